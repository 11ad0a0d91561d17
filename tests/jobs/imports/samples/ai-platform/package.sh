JOB_NAME=digits_1
gcloud ai-platform jobs submit training $JOB_NAME \
    --stream-logs \
    --runtime-version 2.11 \
    --python-version 3.7 \
    --job-dir gs://acme-digits/$JOB_NAME \
    --package-path trainer \
    --module-name trainer.task \
    --region us-central1 \
    --scale-tier CUSTOM --master-machine-type n1-standard-8 \
    -- --epochs 5
