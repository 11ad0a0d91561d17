"""A target of kind aws-batch, as a stack exports it."""

from typing import Any

BATCH: dict[str, Any] = {
    "kind": "aws-batch",
    "schema": 1,
    "region": "us-east-1",
    "definition_prefix": "p",
    "log_group": "/g",
    "queue_arn": "arn:aws:batch:us-east-1:123456789012:job-queue/q",
    "job_role_arn": "a",
    "execution_role_arn": "b",
    "definitions": {},
    "environments": [
        {
            "name": "e",
            "arn": "a",
            "capacity": "spot",
            "instance_types": ["g5"],
            "max_vcpus": 8,
            "disk_gib": 100,
        }
    ],
}
