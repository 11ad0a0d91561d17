"""A target, and requests for it, for tests of the AWS Batch backend. Without moto: child processes use it."""

import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from accel.contract.targets import AwsBatchDefinition, AwsBatchEnvironment, AwsBatchTarget
from jobs.backends.aws_batch import AwsBatchBackend, Timing
from jobs.backends.base import Request
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key
from tests.support.moto import KEYS

REGION = "us-east-1"
ACCOUNT = "123456789012"
LOG_GROUP = "/accel/test"
CREDENTIALS = {**KEYS, "AWS_DEFAULT_REGION": REGION}
QUICK = Timing(connect_s=1, read_s=1.5, lease_s=15, quiet_s=0.4, poll_s=0.1, settle_s=0.2, silence_s=5)


def steady(read_s: float) -> Timing:
    """For many clients of one moto."""
    return Timing(connect_s=1, read_s=read_s, lease_s=2 + read_s * 1.5, quiet_s=0.4, poll_s=0.5)


def make_target(**changes: Any) -> AwsBatchTarget:
    """A queue over g5 Spot and on-demand instances with two definitions."""
    values: dict[str, Any] = {
        "region": REGION,
        "queue_arn": f"arn:aws:batch:{REGION}:{ACCOUNT}:job-queue/gpu",
        "environments": [
            AwsBatchEnvironment(
                name=name,
                arn=f"arn:aws:batch:{REGION}:{ACCOUNT}:compute-environment/{name}",
                capacity=capacity,
                instance_types=["g5"],
                max_vcpus=192,
                disk_gib=200,
            )
            for name, capacity in (("spot", "spot"), ("steady", "on-demand"))
        ],
        "definitions": {
            "train": AwsBatchDefinition(
                arn=f"arn:aws:batch:{REGION}:{ACCOUNT}:job-definition/train",
                image="registry.example/train:1.0",
                vcpus=8,
                memory_mib=28000,
                gpus=1,
                shm_mib=8192,
                secrets={"TOKEN": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:token-AbCdEf"},
            ),
        },
        "definition_prefix": "accel-test",
        "log_group": LOG_GROUP,
        "job_role_arn": f"arn:aws:iam::{ACCOUNT}:role/job",
        "execution_role_arn": f"arn:aws:iam::{ACCOUNT}:role/execution",
        "claim_table": "claims",
    }
    return AwsBatchTarget(**{**values, **changes})


def backend_at(endpoint: str, *, timing: Timing = QUICK, **changes: Any) -> AwsBatchBackend:
    """A backend that talks to an endpoint. Its clients are made here: making them is not thread-safe."""
    backend = AwsBatchBackend("gpu", make_target(**changes), timing=timing)
    clients = backend._clients
    with _environment(AWS_ENDPOINT_URL=endpoint):
        for name in ("batch", "batch_once", "dynamodb", "logs"):
            getattr(clients, name)
    return backend


def request_of(backend: AwsBatchBackend, text: str, *, own: bool = False, **fields: Any) -> Request:
    """The request of a small job under the key of a text; `own`: with a definition of its own to register."""
    values: dict[str, Any] = {"name": "digits", "command": ["python", "train.py"], **fields}
    if own:
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        values |= {"image": f"registry.example/own:{digest}", "cpus": 4, "memory_mib": 8000}
    job = Job(**values)
    key = submission_key(job.name, text)
    return backend.render(job, platform_name(job.name, key), key)


@contextmanager
def _environment(**values: str) -> Generator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
