#!/bin/bash
REGION=europe-west4
GPUS=2
gcloud batch jobs submit digits-$(date +%s) \
  --location $REGION \
  --project acme-ml \
  --config - <<EOD
{
  "taskGroups": [{
    "taskSpec": {
      "runnables": [{"container": {
        "imageUri": "europe-docker.pkg.dev/acme/train/digits:3",
        "commands": ["python3", "train.py"]
      }}]
    }
  }],
  "allocationPolicy": {
    "instances": [{
      "installGpuDrivers": true,
      "policy": {"machineType": "g2-standard-24", "accelerators": [{"type": "nvidia-l4", "count": $GPUS}]}
    }]
  }
}
EOD
