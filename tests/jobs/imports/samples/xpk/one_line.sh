ARGS=( --cluster=tpu-cluster --tpu-type=v5e-16 ) ; xpk workload create "${ARGS[@]}" --workload=digits --docker-image=us-docker.pkg.dev/acme/train/max:3 --command "python3 train.py"
