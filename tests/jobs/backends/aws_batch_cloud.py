"""A moto server with what an AWS Batch target needs, and a proxy in front of it that breaks chosen calls."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar

import boto3
import pytest
from moto.batch.models import BatchBackend, batch_backends
from moto.dynamodb.models import DynamoDBBackend

from accel.contract import claims
from tests.jobs.backends.aws_batch_target import ACCOUNT, CREDENTIALS, LOG_GROUP, REGION
from tests.support import proxy as support
from tests.support.moto import Moto
from tests.support.proxy import BODIES, Chance

__all__ = ["ANSWERS", "BODIES", "Chance", "Cloud", "Proxy", "running"]


class Cloud:
    """moto in this process. Batch finishes each job at once (it runs nothing)."""

    def __init__(self) -> None:
        _mend_moto()
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = Moto()
        self.endpoint = self._server.url
        self._make()

    def stop(self) -> None:
        self._server.stop()

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=REGION, endpoint_url=self.endpoint)

    @cached_property
    def batch(self) -> Any:
        return self.client("batch")

    def jobs(self, name: str) -> list[str]:
        """The ids of the jobs with a name, straight from moto."""
        backend = batch_backends[ACCOUNT][REGION]
        return [job.job_id for job in backend._jobs.copy().values() if job.job_name == name and ":" not in job.job_id]

    def forget(self, name: str) -> None:
        """Drop the jobs with a name from moto, whose walks grow with all that it holds."""
        backend = batch_backends[ACCOUNT][REGION]
        with LOCK:
            for job_id in [job_id for job_id, job in backend._jobs.items() if job.job_name == name]:
                job = backend._jobs.pop(job_id)
                job.job_queue.jobs.remove(job)

    def _make(self) -> None:
        role = {"Version": "2012-10-17", "Statement": []}
        iam = self.client("iam")
        service_role = iam.create_role(RoleName="batch", AssumeRolePolicyDocument=json.dumps(role))["Role"]["Arn"]
        environment = self.batch.create_compute_environment(
            computeEnvironmentName="spot", type="UNMANAGED", serviceRole=service_role
        )["computeEnvironmentArn"]
        self.batch.create_job_queue(
            jobQueueName="gpu",
            state="ENABLED",
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
        )
        self.batch.register_job_definition(
            jobDefinitionName="train",
            type="container",
            containerProperties={
                "image": "registry.example/train:1.0",
                "resourceRequirements": [
                    {"type": "VCPU", "value": "8"},
                    {"type": "MEMORY", "value": "28000"},
                ],
            },
        )
        self.client("dynamodb").create_table(
            TableName="claims",
            KeySchema=[{"AttributeName": claims.KEY, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": claims.KEY, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self.client("logs").create_log_group(logGroupName=LOG_GROUP)


LOCK = threading.RLock()
ONE_AT_A_TIME: dict[type[Any], tuple[str, ...]] = {
    DynamoDBBackend: ("put_item", "update_item", "delete_item", "get_item"),
    BatchBackend: (
        "register_job_definition",
        "describe_job_definitions",
        "submit_job",
        "describe_jobs",
        "list_jobs",
        "cancel_job",
        "terminate_job",
    ),
}


def _mend_moto() -> None:
    """Departures: a definition's ARN works without its revision, an array's tasks are listed only where they are
    asked for, and what changes or walks through moto's tables is done by one thread at a time."""
    if getattr(BatchBackend, "mended", False):
        return
    by_identifier = BatchBackend.get_job_definition

    def get_job_definition(self: Any, identifier: str) -> Any:
        tail = identifier.rpartition("/")[2]
        return by_identifier(self, tail if "/" in identifier and ":" not in tail else identifier)

    BatchBackend.get_job_definition = get_job_definition  # type: ignore[method-assign]
    every = BatchBackend.list_jobs

    def list_jobs(self: Any, job_queue_name: str | None, **asked: Any) -> list[Any]:
        return [job for job in every(self, job_queue_name, **asked) if not (job_queue_name and ":" in job.job_id)]

    BatchBackend.list_jobs = list_jobs  # type: ignore[method-assign]
    for backend, names in ONE_AT_A_TIME.items():
        for name in names:
            method = getattr(backend, name)

            def locked(*args: Any, method: Callable[..., Any] = method, **kwargs: Any) -> Any:
                with LOCK:
                    return method(*args, **kwargs)

            setattr(backend, name, locked)
    BatchBackend.mended = True  # type: ignore[attr-defined]


ANSWERS = {
    "429": (429, "TooManyRequestsException"),
    "400 throttle": (400, "ThrottlingException"),
    "400": (400, "ClientException"),
    "403": (403, "AccessDeniedException"),
    "403 expired": (403, "ExpiredTokenException"),
    "500": (500, "ServerException"),
    "502": (502, ""),
    "503": (503, "ServiceUnavailable"),
    "504": (504, ""),
}
"""Faults that are answers, given without asking moto."""


def running() -> Iterator[Cloud]:
    """For a fixture: one that this process has the credentials of."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        made = Cloud()
        yield made
        made.stop()


class Proxy(support.Proxy):
    """In front of moto. Operations are those of DynamoDB by name, else the last part of the path."""

    ANSWERS: ClassVar[dict[str, tuple[int, str]]] = ANSWERS
    KEPT: ClassVar[tuple[str, ...]] = ("content-type", "date", "x-amzn-errortype", "x-amzn-requestid", "x-amz-crc32")

    def operation(self, line: str, headers: dict[str, str]) -> str:
        target = headers.get("x-amz-target", "").rpartition(".")[2]
        return target or line.split(" ")[1].rpartition("/")[2]

    def error(self, status: int, word: str) -> tuple[support.Headers, bytes]:
        return [("x-amzn-errortype", word)], json.dumps({"__type": word, "message": word}).encode()
