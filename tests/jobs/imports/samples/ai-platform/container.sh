export BUCKET=acme-digits
export JOB_NAME=digits_$(date +%Y%m%d_%H%M%S)
gcloud ai-platform jobs submit training $JOB_NAME \
  --scale-tier BASIC_GPU \
  --region us-central1 \
  --master-image-uri gcr.io/acme-ml/digits:3 \
  -- \
  --model-dir=gs://$BUCKET/$JOB_NAME \
  --epochs=10
