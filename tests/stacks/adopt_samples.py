"""Requests as pages about GPUs on AWS Batch show them, with the values that people copy."""

from typing import Any

ACCOUNT = "210020003000"

ASKED: dict[str, dict[str, Any]] = {
    "environment": {
        "computeEnvironmentName": "gpu-compute-env",
        "type": "MANAGED",
        "state": "ENABLED",
        "computeResources": {
            "type": "EC2",
            "allocationStrategy": "BEST_FIT_PROGRESSIVE",
            "minvCpus": 0,
            "maxvCpus": 256,
            "instanceTypes": ["p3", "p4d", "p5", "g5", "g6"],
            "subnets": ["subnet-0abc123", "subnet-0def456"],
            "securityGroupIds": ["sg-0abc123"],
            "instanceRole": "arn:aws:iam::123456789012:instance-profile/ecsInstanceRole",
            "ec2Configuration": [{"imageType": "ECS_AL2_NVIDIA"}],
        },
        "serviceRole": "arn:aws:iam::123456789012:role/AWSBatchServiceRole",
    },
    "spot": {
        "computeEnvironmentName": "gpu-spot-compute-env",
        "type": "MANAGED",
        "state": "ENABLED",
        "computeResources": {
            "type": "SPOT",
            "allocationStrategy": "SPOT_CAPACITY_OPTIMIZED",
            "minvCpus": 0,
            "maxvCpus": 256,
            "instanceTypes": ["p3", "g5"],
            "subnets": ["subnet-0abc123"],
            "securityGroupIds": ["sg-0abc123"],
            "instanceRole": "arn:aws:iam::123456789012:instance-profile/ecsInstanceRole",
            "spotIamFleetRole": "arn:aws:iam::123456789012:role/AmazonEC2SpotFleetRole",
            "ec2Configuration": [{"imageType": "ECS_AL2_NVIDIA"}],
        },
    },
    "queue": {
        "jobQueueName": "gpu-job-queue",
        "state": "ENABLED",
        "priority": 10,
        "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "gpu-compute-env"}],
    },
    "definition": {
        "jobDefinitionName": "gpu-training-job",
        "type": "container",
        "containerProperties": {
            "image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/ml-training:latest",
            "resourceRequirements": [
                {"type": "VCPU", "value": "8"},
                {"type": "MEMORY", "value": "32768"},
                {"type": "GPU", "value": "1"},
            ],
            "linuxParameters": {"sharedMemorySize": 8192},
            "logConfiguration": {
                "logDriver": "awslogs",
                "options": {"awslogs-group": "/aws/batch/gpu-jobs", "awslogs-stream-prefix": "training"},
            },
            "environment": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
        },
    },
    "multi": {
        "jobDefinitionName": "multi-gpu-training",
        "type": "container",
        "containerProperties": {
            "image": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/ml-training:1",
            "resourceRequirements": [
                {"type": "VCPU", "value": "32"},
                {"type": "MEMORY", "value": "131072"},
                {"type": "GPU", "value": "4"},
            ],
            "linuxParameters": {"sharedMemorySize": 16384},
        },
    },
}
