gcloud ml-engine jobs submit training digits --scale-tier BASIC_TPU --region us-central1 \
  --runtime-version 1.15 --module-name trainer.task --package-path trainer --job-dir gs://acme-digits/out
