#!/bin/bash
export PROJECT_ID=""
export CLUSTER_NAME=""
export ZONE="us-east5-b"
export WORKLOAD_IMAGE="us-docker.pkg.dev/acme/train/max:3"
export WORKLOAD_NAME="$(printf "%.26s" "${USER//_/-}-digits-4096")-$(date +%Y%m%d-%H%M)"

XLA_FLAGS=" \
  --xla_tpu_scoped_vmem_limit_kib=65536 \
  --xla_enable_async_all_gather=true "

ARGS="\
model_name=digits \
steps=30 \
run_name=${WORKLOAD_NAME}"

xpk workload create \
  --cluster=$CLUSTER_NAME \
  --project=$PROJECT_ID \
  --zone=$ZONE \
  --priority=very-high \
  --max-restarts=0 \
  --device-type=tpu7x-4x4x8 \
  --num-slices=1 \
  --docker-image="${WORKLOAD_IMAGE}" \
  --enable-debug-logs \
  --workload="${WORKLOAD_NAME}" \
  --command="set -e && export LIBTPU_INIT_ARGS='${XLA_FLAGS}' && python3 -m train configs/base.yml ${ARGS}"
