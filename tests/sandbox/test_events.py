"""What a job's change of state reaches in the sandbox's cloud, and what it never leaves."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto.events.models import Rule, events_backends
from moto.logs.models import logs_backends
from moto.logs.responses import LogsResponse
from moto.sns.models import Subscription, sns_backends

from sandbox.aws import events

ACCOUNT, REGION = "210020003000", "eu-north-1"


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A topic and a log group that are told of failed jobs."""
    monkeypatch.setattr(Rule, "send_to_targets", Rule.send_to_targets)
    monkeypatch.setattr(Subscription, "publish", Subscription.publish)
    monkeypatch.setattr(Rule, "_send_to_cw_log_group", Rule._send_to_cw_log_group)
    for call in ("put_resource_policy", "describe_resource_policies", "delete_resource_policy"):
        monkeypatch.setattr(LogsResponse, call, getattr(LogsResponse, call))
    events.install()
    made = sns_backends[ACCOUNT][REGION].create_topic("told")
    logs_backends[ACCOUNT][REGION].create_log_group("/aws/events/told", {})
    bus = events_backends[ACCOUNT][REGION]
    pattern = {"source": ["aws.batch"], "detail": {"status": ["FAILED"]}}
    bus.put_rule("failed", event_pattern=json.dumps(pattern))
    group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/events/told"
    shape = {"InputPathsMap": {"id": "$.detail.jobId"}, "InputTemplate": '"<id> failed"'}
    targets = [{"Id": "topic", "Arn": made.arn, "InputTransformer": shape}, {"Id": "log", "Arn": group}]
    bus.put_targets("failed", None, targets)
    admit(f"{group}:*", f"arn:aws:events:{REGION}:{ACCOUNT}:rule/failed")
    yield made
    for backends in (events_backends, sns_backends, logs_backends):
        backends[ACCOUNT][REGION].reset()


def admit(resource: str, rule: str) -> None:
    """The account's policy for what EventBridge writes."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": ["events.amazonaws.com"]},
        "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
        "Resource": resource,
        "Condition": {"ArnEquals": {"aws:SourceArn": rule}},
    }
    logs_backends[ACCOUNT][REGION].put_resource_policy("events", json.dumps({"Statement": [statement]}))


def job(status: str) -> dict[str, Any]:
    return {"jobArn": "arn:job", "jobId": "j-1", "status": status}


def messages(topic: Any) -> list[str]:
    return [sent[1] for sent in topic.sent_notifications]


def test_a_failed_job_is_told_of_and_logged(topic: Any) -> None:
    for status in ("SUBMITTED", "RUNNABLE", "FAILED"):
        events.send_job_change(ACCOUNT, REGION, job(status))
    assert messages(topic) == ["j-1 failed"]
    streams = logs_backends[ACCOUNT][REGION].groups["/aws/events/told"].streams.values()
    (logged,) = [json.loads(one.message) for stream in streams for one in stream.events]
    assert (logged["detail-type"], logged["detail"]["status"]) == ("Batch Job State Change", "FAILED")


@pytest.mark.parametrize(
    ("group", "rule"), [("/aws/events/other", "failed"), ("/aws/events/told", "other"), ("/aws/events/told", "failed")]
)
def test_a_log_group_takes_what_a_policy_admits(topic: Any, group: str, rule: str) -> None:
    arn = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}"
    admit(f"{arn}:*", f"arn:aws:events:{REGION}:{ACCOUNT}:rule/{rule}")
    events.send_job_change(ACCOUNT, REGION, job("FAILED"))
    written = logs_backends[ACCOUNT][REGION].groups["/aws/events/told"].streams
    assert bool(written) == (group.endswith("told") and rule == "failed")
    assert messages(topic) == ["j-1 failed"]


def test_a_submission_makes_no_event(topic: Any) -> None:
    bus = events_backends[ACCOUNT][REGION]
    bus.put_rule("failed", event_pattern=json.dumps({"source": ["aws.batch"]}))
    events.send_job_change(ACCOUNT, REGION, job("SUBMITTED"))
    assert messages(topic) == []


def test_a_disabled_rule_sends_nothing(topic: Any) -> None:
    events_backends[ACCOUNT][REGION].disable_rule("failed", None)
    events.send_job_change(ACCOUNT, REGION, job("FAILED"))
    assert messages(topic) == []


def test_nothing_is_posted_beyond_this_machine(topic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    posted: list[str] = []
    monkeypatch.setattr("moto.sns.models.requests.post", lambda url, **_: posted.append(url))
    sns = sns_backends[ACCOUNT][REGION]
    here, there = "http://127.0.0.1:9/hook", "https://hooks.company.com/1"
    for protocol, endpoint in (("http", here), ("https", there)):
        sns.subscribe(topic.arn, endpoint, protocol)
    events.send_job_change(ACCOUNT, REGION, job("FAILED"))
    assert posted == [here]
