python3 xpk.py workload create --cluster a3 --workload nccl --device-type=h100-mega-80gb-8 --num-nodes=2 \
  --docker-image=us-docker.pkg.dev/acme/train/max:3 --priority=medium --command="bash run.sh" --scheduler=gke.io/topology-aware-auto
