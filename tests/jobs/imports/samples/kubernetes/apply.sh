NAME=digits
kubectl apply -f - <<EOF
apiVersion: batch/v1
kind: Job
metadata:
  name: $NAME
spec:
  backoffLimit: 1
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: train
        image: us-docker.pkg.dev/acme/train/digits:3
        command: [python3, train.py]
        resources:
          limits:
            nvidia.com/gpu: 2
EOF
kubectl wait --for=condition=complete job/digits
