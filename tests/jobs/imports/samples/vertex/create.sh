#!/bin/bash
REGION=us-central1
JOB=digits_$(date +%Y%m%d_%H%M%S)
gcloud ai custom-jobs create \
  --region=${REGION} \
  --display-name=${JOB} \
  --worker-pool-spec=machine-type=g2-standard-12,replica-count=1,accelerator-type=NVIDIA_L4,accelerator-count=1,container-image-uri=us-docker.pkg.dev/acme/train/digits:3 \
  --args=--epochs=5,--lr=0.1
