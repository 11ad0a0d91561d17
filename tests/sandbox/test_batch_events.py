"""A job's changes of state as EventBridge events, shown by plain boto3."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox.conftest import Aws
from tests.support.waiting import until


@pytest.fixture
def told(aws: Aws) -> Iterator[Any]:
    """Reads the events of Batch that have reached a queue of SQS."""
    sqs, bus = aws.client("sqs"), aws.client("events")
    url = sqs.create_queue(QueueName=aws.name("told"))["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    bus.put_rule(Name="told", EventPattern=json.dumps({"source": ["aws.batch"]}))
    bus.put_targets(Rule="told", Targets=[{"Id": "told", "Arn": arn}])
    seen: list[dict[str, Any]] = []

    def read(job: str) -> list[tuple[str, str]]:
        seen.extend(
            json.loads(message["Body"])
            for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        )
        mine = [event for event in seen if event["detail"]["jobId"] == job]
        return [(event["detail-type"], event["detail"]["status"]) for event in mine]

    yield read
    bus.remove_targets(Rule="told", Ids=["told"])
    bus.delete_rule(Name="told")


def test_every_state_after_the_submission_is_told(aws: Aws, told: Any) -> None:
    queue = aws.queue(aws.environment())
    job = aws.submit(queue, aws.definition(["sh", "-c", "exit 3"]))
    until(lambda: ("Batch Job State Change", "FAILED") in told(job))
    kinds = dict.fromkeys(told(job))
    assert list(kinds) == [("Batch Job State Change", state) for state in ("RUNNABLE", "STARTING", "RUNNING", "FAILED")]


def test_a_blocked_queue_is_told_of_once(aws: Aws, told: Any) -> None:
    queue = aws.queue(aws.environment(instanceTypes=["g5.xlarge"]))
    job = aws.submit(queue, aws.definition(["true"], gpu=8))
    blocked = ("Batch Job Queue Blocked", "RUNNABLE")
    until(lambda: blocked in told(job))
    aws.batch.cancel_job(jobId=job, reason="test")
    until(lambda: ("Batch Job State Change", "FAILED") in told(job))
    assert told(job).count(blocked) == 1
