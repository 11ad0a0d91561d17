#!/bin/bash
cat > definition.json <<'EOF'
{
  "jobDefinitionName": "digits-train",
  "type": "container",
  "containerProperties": {
    "image": "210987654321.dkr.ecr.us-east-1.amazonaws.com/digits:3",
    "command": ["python3", "train.py"],
    "resourceRequirements": [{"type": "VCPU", "value": "2"}, {"type": "MEMORY", "value": "4096"}]
  }
}
EOF
aws batch register-job-definition --cli-input-json file://definition.json
