xpk workload create \
--workload digits --command "echo start; python3 train.py" \
--cluster tpu-cluster \
--tpu-type=v5litepod-16 --project=acme-ml --zone us-east5-b \
--docker-image us-docker.pkg.dev/acme/train/max:3
