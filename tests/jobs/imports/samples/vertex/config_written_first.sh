#!/bin/bash
IMAGE=us-docker.pkg.dev/acme/train/digits:3
cat > ./config.yaml <<EOF
workerPoolSpecs:
  machineSpec:
    machineType: n1-highmem-8
  replicaCount: 1
  containerSpec:
    imageUri: $IMAGE
EOF
gcloud ai custom-jobs create --region=us-central1 --display-name=digits --config=config.yaml
