#!/bin/bash
ID=$(aws batch submit-job \
  --job-name "digits-$(date +%F)" \
  --job-queue gpu-queue \
  --job-definition digits-train \
  --array-properties size=10 \
  --retry-strategy attempts=3 \
  --timeout attemptDurationSeconds=3600 \
  --container-overrides '{"command": ["python3", "train.py"], "environment": [{"name": "LR", "value": "0.1"}],
    "resourceRequirements": [{"type": "GPU", "value": "1"}, {"type": "VCPU", "value": "8"}, {"type": "MEMORY", "value": "30000"}]}' \
  --query jobId --output text)
