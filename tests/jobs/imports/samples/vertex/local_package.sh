gcloud ai custom-jobs create \
    --region=europe-west4 \
    --display-name=digits \
    --worker-pool-spec=machine-type=n1-standard-4,replica-count=1,executor-image-uri=us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest,local-package-path=.,script=trainer/task.py,requirements=transformers
