ARGS=(--workload digits --cluster c --tpu-type v5p-128 --docker-image us-docker.pkg.dev/acme/train/max:3 --command "python3 train.py")
if [ -n "${RESERVATION:-}" ]; then
  ARGS+=(--reservation "${RESERVATION}")
fi
xpk workload create "${ARGS[@]}"
