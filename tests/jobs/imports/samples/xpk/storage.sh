xpk workload create --workload digits --command "ls /data" --cluster c --tpu-type=v6e-8 \
  --docker-image us-docker.pkg.dev/acme/train/max:3 --storage digits-bucket
