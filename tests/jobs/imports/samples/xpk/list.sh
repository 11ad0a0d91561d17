#!/bin/bash
set -e
CLUSTER="${CLUSTER:-tpu-cluster}"
DEVICE_TYPE="${DEVICE_TYPE:-v5p-128}"
RUN="${RUN:-digits}"
FLAGS=" --x=1 --y=2 "
CMD="export LIBTPU_INIT_ARGS=\"${FLAGS}\" && cd /app && python3 train.py run_name=${RUN} dataset='c4/en'"

XPK_ARGS=(
  --workload "${RUN}"
  --docker-image us-docker.pkg.dev/acme/train/max:3
  --command "${CMD}"
  --priority "${PRIORITY:-medium}"
  --enable-debug-logs
  --cluster "${CLUSTER}"
  --tpu-type "${DEVICE_TYPE}"  # a slice
)
XPK_ARGS+=(--zone us-east5-b)

xpk workload create "${XPK_ARGS[@]}"
