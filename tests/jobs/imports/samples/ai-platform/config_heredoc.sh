cat > config.yaml <<EOF
# written for digits
---
trainingInput:
  scaleTier: BASIC
  region: us-east1
  masterConfig:
    imageUri: us-docker.pkg.dev/acme/train/digits:3
EOF
