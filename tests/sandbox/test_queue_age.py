"""The function that looks at waiting jobs, run as Lambda runs it against the sandbox's Batch and CloudWatch."""

import json
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from components.aws.queue_age_function import METRIC, handler
from sandbox import keys


def shown(aws: Any, namespace: str, queue: str) -> list[float]:
    now = datetime.now(UTC)
    points = aws.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=METRIC,
        Dimensions=[{"Name": "Queue", "Value": queue}],
        StartTime=now - timedelta(minutes=10),
        EndTime=now + timedelta(minutes=10),
        Period=600,
        Statistics=["Maximum"],
    )
    return [point["Maximum"] for point in points["Datapoints"]]


def test_the_oldest_waiting_job_of_each_queue(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped, idle = aws.environment(), aws.environment()
    waiting, empty = (aws.shown_queue(aws.queue(one))["jobQueueArn"] for one in (stopped, idle))
    aws.batch.update_compute_environment(computeEnvironment=stopped, state="DISABLED")
    definition = aws.definition(command=["true"])
    aws.reaches(aws.submit(waiting, definition), "RUNNABLE")
    submitted = time.time()
    aws.reaches(aws.submit(empty, definition), "SUCCEEDED")
    aws.reaches(aws.submit(waiting, definition), "RUNNABLE")

    variables = {
        "AWS_ENDPOINT_URL": aws.told["url"],
        **keys.aws(keys.key(aws.home)),
        "AWS_DEFAULT_REGION": "us-east-1",
        "NAMESPACE": "accel/age",
        "QUEUES": json.dumps([waiting, empty]),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ahead = aws.control("clock", advance_s=0)["now"] - time.time()  # other tests advance the sandbox's clock
    clock = SimpleNamespace(time=lambda: time.time() + ahead)
    monkeypatch.setattr("components.aws.queue_age_function.time", clock)
    looked = time.time()
    ages = handler({}, None)
    assert looked - submitted - 0.1 < ages[waiting] < looked - submitted + 30
    assert ages[empty] == 0
    assert shown(aws, "accel/age", waiting) == [ages[waiting]]
    assert shown(aws, "accel/age", empty) == [0]
