xpk workload create --cluster <cluster_name> --base-docker-image max_base_image --workload ${USER}-digits \
  --tpu-type=<tpu_type> --command "bash run.sh"
