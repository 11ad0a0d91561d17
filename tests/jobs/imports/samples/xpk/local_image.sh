xpk workload create --cluster c --base-docker-image max_base_image --workload ${USER}-digits --tpu-type v6e-8 \
  --command "python3 train.py"
