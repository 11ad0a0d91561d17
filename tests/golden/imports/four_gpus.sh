gcloud ai custom-jobs create --region=us-central1 --display-name=my-training-job \
  --worker-pool-spec=machine-type=a2-highgpu-4g,replica-count=1,accelerator-type=NVIDIA_TESLA_A100,accelerator-count=4,container-image-uri=us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.1-13:latest \
  --command='python train.py' \
  --args=--epochs=10,--batch-size=64
