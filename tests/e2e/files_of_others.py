"""Files and commands that people have for other tools, one for each shape that `accel-jobs import` reads.

The program is that of brought/train.py; the sandbox takes the image's name as its folder.
"""

from pathlib import Path

import yaml

from .conftest import Shell

IMAGE = "local/tests/e2e/brought"
COMMAND = ["python", "train.py", "--epochs", "2"]

SLURM = """#!/bin/bash
#SBATCH --job-name=mnist
#SBATCH --gres=gpu:l4:1
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=00:30:00
srun python train.py --epochs 2
"""
SKYPILOT = """
name: mnist
resources:
  accelerators: L4:1
  cpus: 4
  memory: 8
  image_id: docker:acme/train:1
envs:
  EPOCHS: "2"
run: |
  python train.py --epochs $EPOCHS
"""
DSTACK = """
type: task
name: mnist
image: acme/train:1
env:
  - EPOCHS=2
commands:
  - python train.py --epochs $EPOCHS
resources:
  cpu: 4
  memory: 8GB
  gpu: L4:1
"""
KUBERNETES = """
apiVersion: batch/v1
kind: Job
metadata:
  name: mnist
spec:
  backoffLimit: 1
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: train
          image: acme/train:1
          command: [python, train.py, --epochs, "2"]
          resources:
            requests: {cpu: "1", memory: 1Gi}
"""
XPK = """
xpk workload create \\
  --cluster tpus --workload mnist --tpu-type v5litepod-4 \\
  --docker-image acme/train:1 \\
  --command "python train.py --epochs 2"
"""
CONTAINER = """{
    "image": "local/tests/e2e/brought",
    "command": ["python", "train.py", "--epochs", "%s"],
    "resourceRequirements": [
      {"type": "VCPU", "value": "4"}, {"type": "MEMORY", "value": "8192"}, {"type": "GPU", "value": "1"}
    ]
  }"""
AWS_DEFINITION = f"""{{
  "jobDefinitionName": "mnist",
  "type": "container",
  "containerProperties": {CONTAINER % "Ref::epochs"},
  "parameters": {{"epochs": "2"}},
  "retryStrategy": {{"attempts": 2}}
}}
"""
AWS_REGISTER = f"""
aws batch register-job-definition \\
  --job-definition-name mnist \\
  --type container \\
  --container-properties '{CONTAINER % 2}'
"""
GOOGLE_BATCH = """
gcloud batch jobs submit mnist --location us-central1 --config - <<EOF
{
  "taskGroups": [{"taskSpec": {
    "runnables": [{"container": {
      "imageUri": "acme/train:1", "entrypoint": "python", "commands": ["train.py", "--epochs", "2"]
    }}],
    "computeResource": {"cpuMilli": 2000, "memoryMib": 4096}
  }}],
  "allocationPolicy": {"instances": [{"policy": {"machineType": "g2-standard-4"}}]}
}
EOF
"""
VERTEX = """
gcloud ai custom-jobs create --region=us-central1 --display-name=mnist \\
  --worker-pool-spec=machine-type=g2-standard-4,accelerator-type=NVIDIA_L4,accelerator-count=1,\\
replica-count=1,container-image-uri=acme/train:1 \\
  --command=python --args=train.py,--epochs,2
"""
AI_PLATFORM = """
gcloud ai-platform jobs submit training mnist --region us-central1 \\
  --scale-tier custom --master-machine-type n1-standard-8 \\
  --master-accelerator count=1,type=nvidia-tesla-t4 \\
  --master-image-uri gcr.io/acme/train:1
"""


def imported(shell: Shell, text: str, kind: str, target: str, folder: Path) -> str:
    """Import a text without naming its kind, submit the job, and return its log once it has ended."""
    source, job = folder / "source", folder / "job.yaml"
    source.write_text(text.lstrip())
    image = [] if kind == "aws-batch" else ["--image", IMAGE]
    started = shell.start("jobs", "import", str(source), *image)
    document, report = started.communicate(timeout=60)
    assert started.returncode == 0, report
    assert f"is read as {kind}: " in report
    # Where the image's own entry point would run: the sandbox's image has none.
    job.write_text(yaml.safe_dump({"command": COMMAND} | yaml.safe_load(document)))
    ref = shell.jobs("submit", str(job), "--to", target, "--wait", "-o", "id")
    return shell.jobs("logs", ref)
