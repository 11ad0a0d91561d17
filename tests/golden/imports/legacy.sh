# Submits the flowers.
JOB_NAME=flowers_7
JOB_DIR=gs://acme-models/flowers
gcloud ai-platform jobs submit training $JOB_NAME \
  --package-path trainer/ \
  --module-name trainer.task \
  --job-dir $JOB_DIR \
  --region us-central1 \
  --runtime-version 2.11 \
  --python-version 3.7 \
  --scale-tier custom \
  --master-machine-type complex_model_m_gpu \
  --worker-machine-type complex_model_m_gpu \
  --worker-count 9 \
  --parameter-server-machine-type large_model \
  --parameter-server-count 3 \
  -- \
  --train-files gs://acme-data/train --epochs 50
