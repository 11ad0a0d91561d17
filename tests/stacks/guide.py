"""A stack out of the values that pages about GPUs on AWS Batch show, as they stand there and as they work."""

from typing import Any

from tests.support.project import put

SAMPLE, OURS = "123456789012", "210020003000"
IAM = f"arn:aws:iam::{OURS}"
ON_DEMAND = "aws.environments.gpu-compute-env"
SPOT = "aws.environments.gpu-spot-compute-env"
QUEUE = "aws.queues.gpu-job-queue"
TRAINING = "aws.definitions.gpu-training-job"
MULTI = "aws.definitions.multi-gpu-training"

VERBATIM: dict[str, Any] = {
    "owner": "ml-platform",
    "aws": {
        "region": "us-east-1",
        "network": {
            "kind": "existing",
            "vpc_id": "vpc-0a1b2c3d",
            "subnet_ids": ["subnet-0abc123", "subnet-0def456"],
            "security_group_ids": ["sg-0abc123"],
        },
        "environments": {
            "gpu-compute-env": {
                "capacity": "on-demand",
                "state": "ENABLED",
                "allocation_strategy": "BEST_FIT_PROGRESSIVE",
                "min_vcpus": 0,
                "max_vcpus": 256,
                "instance_types": ["p3", "p4d", "p5", "g5", "g6"],
                "instance_profile": f"arn:aws:iam::{SAMPLE}:instance-profile/ecsInstanceRole",
                "image_type": "ECS_AL2_NVIDIA",
                "service_role": f"arn:aws:iam::{SAMPLE}:role/AWSBatchServiceRole",
            },
            "gpu-spot-compute-env": {
                "capacity": "spot",
                "state": "ENABLED",
                "allocation_strategy": "SPOT_CAPACITY_OPTIMIZED",
                "min_vcpus": 0,
                "max_vcpus": 256,
                "instance_types": ["p3", "g5"],
                "subnet_ids": ["subnet-0abc123"],
                "spot_fleet_role": f"arn:aws:iam::{SAMPLE}:role/AmazonEC2SpotFleetRole",
                "image_type": "ECS_AL2_NVIDIA",
            },
        },
        "queues": {"gpu-job-queue": {"environments": ["gpu-compute-env"], "priority": 10}},
        "definitions": {
            "gpu-training-job": {
                "image": f"{SAMPLE}.dkr.ecr.us-east-1.amazonaws.com/ml-training:latest",
                "vcpus": 8,
                "memory_mib": 32768,
                "gpus": 1,
                "shm_mib": 8192,
                "env": {"NVIDIA_VISIBLE_DEVICES": "all"},
            },
            "multi-gpu-training": {
                "image": f"{SAMPLE}.dkr.ecr.us-east-1.amazonaws.com/ml-training:latest",
                "vcpus": 32,
                "memory_mib": 131072,
                "gpus": 4,
                "shm_mib": 16384,
            },
        },
    },
}

_CORRECTED: dict[str, Any] = {
    "aws.network.subnet_ids": ["subnet-0abc1230", "subnet-0def4560"],
    "aws.network.security_group_ids": ["sg-0abc1230"],
    ON_DEMAND: {
        "capacity": "on-demand",
        "max_vcpus": 256,
        "instance_types": ["g5", "g6"],
        "instance_profile": f"{IAM}:instance-profile/ecsInstanceRole",
    },
    SPOT: {"capacity": "spot", "max_vcpus": 256, "instance_types": ["g5"], "subnet_ids": ["subnet-0abc1230"]},
    f"{TRAINING}.image": f"{OURS}.dkr.ecr.us-east-1.amazonaws.com/ml-training:1.4",
    f"{TRAINING}.memory_mib": 30000,
    f"{TRAINING}.env": {},
    f"{MULTI}.image": f"{OURS}.dkr.ecr.us-east-1.amazonaws.com/ml-training:1.4",
}


def changed(values: dict[str, Any], into: dict[str, Any]) -> dict[str, Any]:
    """A copy with values changed by path; None takes one away."""
    for path, value in values.items():
        into = put(path, value, into)
        if value is None:
            way, _, last = path.rpartition(".")
            here: Any = into
            for step in way.split("."):
                here = here[step]
            del here[last]
    return into


SOUND = changed(_CORRECTED, VERBATIM)
"""Nothing is said of it but that no queue names its Spot environment."""
