SUB_SLICING_ENABLED=true RESOURCES="map[v6e-16:8]" xpk workload create --project=acme-ml --zone=us-central1-a \
  --cluster=golden --tpu-type=v6e-8 --command="bash hello" --workload=golden --script-dir=/tmp
