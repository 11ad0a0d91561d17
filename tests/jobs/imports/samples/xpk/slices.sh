xpk workload create --cluster c --workload multi --tpu-type v6e-256 --num-slices 2 --spot \
  --docker-image us-docker.pkg.dev/acme/train/max:3 --command 'python3 train.py'
