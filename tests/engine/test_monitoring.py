"""An environment that is watched, through the real engine: made, changed, told of a job, and gone without a trace."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cloud import listing
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment, put
from tests.support.soak import soak_only

REGION = "ca-central-1"

WATCHED: dict[str, Any] = {
    "emails": ["ml-oncall@company.com"],
    "https_endpoints": ["https://chat.company.com/hook/1"],
    "gpu_metrics": True,
}


def watched(**changed: Any) -> dict[str, Any]:
    values = put("aws.region", REGION, environment("sandbox"))
    values = put("aws.network.zones", [f"{REGION}a", f"{REGION}b"], values)
    return put("aws.monitoring", {**WATCHED, **changed}, values)


def event(kind: str, queue: str, **detail: Any) -> dict[str, str]:
    described = {
        "jobArn": f"{queue}/job",
        "jobName": "train",
        "jobId": "j-1",
        "jobQueue": queue,
        "container": {"environment": [{"name": "TOKEN", "value": "hunter2"}], "logStreamName": "train/default/1"},
        **detail,
    }
    return {"Source": "aws.batch", "DetailType": kind, "Detail": json.dumps(described)}


def logged(sandbox: Sandbox, group: str) -> list[dict[str, Any]]:
    events = sandbox.client("logs", REGION).filter_log_events(logGroupName=group)["events"]
    return [json.loads(one["message"]) for one in events]


@pytest.fixture
def stack(tmp_path: Path, sandbox: Sandbox) -> Stack:
    return Stack(tmp_path / "watched", sandbox, watched(), stack="watched")


@soak_only
def test_from_nothing_to_nothing(stack: Stack, sandbox: Sandbox) -> None:
    before = listing(sandbox, REGION)
    made = stack.up()
    there = listing(sandbox, REGION)
    assert stack.up("--refresh", "--expect-no-changes").ops("same", "refresh") == {}
    counts = {kind: len(there[kind]) - len(before[kind]) for kind in ("rules", "topics", "subscriptions", "alarms")}
    assert counts == {"rules": 4, "topics": 1, "subscriptions": 2, "alarms": 4}
    assert len(there["functions"]) == 1
    assert there["dashboards"] == ["accel-watched"] and there["log policies"] == before["log policies"]

    told = made.outputs["monitoring"]
    queue = made.outputs["targets"]["gpu"]["queue_arn"]
    sqs, sns = sandbox.client("sqs", REGION), sandbox.client("sns", REGION)
    inbox = sqs.create_queue(QueueName="inbox")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=inbox, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    raw = {"RawMessageDelivery": "true"}
    probe = sns.subscribe(TopicArn=told["topic_arn"], Protocol="sqs", Endpoint=arn, Attributes=raw)["SubscriptionArn"]

    state = "Batch Job State Change"
    sent = [
        event(state, queue, status="RUNNING"),
        event(state, queue, status="FAILED", statusReason="Essential container in task exited"),
        event(state, queue, status="FAILED", jobId="j-2:7", arrayProperties={"index": 7}),
        event("Batch Job Queue Blocked", queue, status="RUNNABLE", statusReason="MISCONFIGURATION:..."),
        event(state, f"{queue}-of-others", status="FAILED"),
    ]
    answer = sandbox.client("events", REGION).put_events(Entries=sent)
    assert not answer.get("FailedEntryCount")

    in_log = sorted((one["detail-type"], one["detail"]["status"]) for one in logged(sandbox, told["event_log"]))
    assert in_log == [("Batch Job Queue Blocked", "RUNNABLE"), (state, "FAILED"), (state, "FAILED"), (state, "RUNNING")]
    got = sqs.receive_message(QueueUrl=inbox, MaxNumberOfMessages=10).get("Messages", [])
    bodies = sorted(message["Body"] for message in got)
    assert len(bodies) == 2, bodies
    assert bodies[0].startswith(f"Batch Job Queue Blocked: job train (j-1) is RUNNABLE in {queue}.")
    assert bodies[1].startswith(f"{state}: job train (j-1) is FAILED in {queue}. Reason: Essential container")
    assert not any("hunter2" in body for body in bodies), "a message must not hold a container's variables"
    sns.unsubscribe(SubscriptionArn=probe)
    sqs.delete_queue(QueueUrl=inbox)

    # In place: who is told, of what, and when an alarm rings.
    alarms = {"failed_jobs": {"jobs": 2}, "waiting_jobs": {"minutes": 90}}
    changed = watched(job_states=["FAILED", "SUCCEEDED"], retention_days=14, **alarms)
    stack.write_environment(changed)
    steps = [step for step in stack.up().steps if step.type.startswith("aws:") and step.op != "same"]
    assert sorted((step.op, step.name, step.diffs) for step in steps) == [
        ("update", "monitoring-age", ("retentionInDays",)),
        ("update", "monitoring-events", ("retentionInDays",)),
        ("update", "monitoring-gpu-failed", ("alarmDescription", "threshold")),
        ("update", "monitoring-gpu-waiting", ("alarmDescription", "threshold")),
        ("update", "monitoring-jobs", ("eventPattern",)),
    ]
    assert stack.up("--refresh", "--expect-no-changes").ops("same", "refresh") == {}

    # Without the section nothing of it stays, and the rest is left alone but for the agent's part of it.
    values = put("aws.monitoring", None, changed)
    stack.write_environment(values)
    gone = {(step.op, step.type.rpartition(":")[2]) for step in stack.up().steps if step.op != "same"}
    assert {kind for op, kind in gone if op == "update"} <= {"LaunchTemplate", "ComputeEnvironment"}
    assert listing(sandbox, REGION)["rules"] == before["rules"]

    assert set(stack.destroy().ops("same")) == {"delete"}
    assert listing(sandbox, REGION) == before
