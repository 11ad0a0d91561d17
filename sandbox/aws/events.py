"""EventBridge and SNS of the sandbox: rules reach topics, nothing leaves this machine, and jobs make events."""

import json
from typing import Any
from urllib.parse import urlsplit

from . import log_policies

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def install() -> None:
    """Let every rule publish to the topics among its targets, which moto's do not, and keep what is published here."""
    from moto.events.models import EventTemplateParser, Rule
    from moto.sns.models import Subscription, sns_backends

    log_policies.install()
    to_others, publish = Rule.send_to_targets, Subscription.publish

    def send(rule: Any, event: Any, transform_input: bool = True) -> None:
        # To moto a rule of a schedule alone matches every event.
        matches = bool(rule.event_pattern.dump()) and rule.event_pattern.matches_event(event)
        if rule.state != "ENABLED" or not matches:
            return
        topics = [target for target in rule.targets if ":sns:" in target["Arn"]]
        for target in topics:
            shape = target.get("InputTransformer", {})
            told = EventTemplateParser.parse(shape.get("InputTemplate"), shape.get("InputPathsMap", {}), event)
            message = told if isinstance(told, str) else json.dumps(told)
            sns_backends[rule.account_id][rule.region_name].publish(message, arn=target["Arn"])
        every, rule.targets = rule.targets, [target for target in rule.targets if target not in topics]
        try:
            to_others(rule, event, transform_input)
        finally:
            rule.targets = every

    def publish_here(subscription: Any, *args: Any, **named: Any) -> None:
        # moto posts to the endpoint: a demonstration must not ring somebody's pager.
        web = subscription.protocol in ("http", "https")
        if not web or urlsplit(subscription.endpoint).hostname in _LOOPBACK:
            publish(subscription, *args, **named)

    Rule.send_to_targets, Subscription.publish = send, publish_here


def job_changed(account: str, region: str, document: Any, kind: str = "Batch Job State Change") -> None:
    """Send what AWS Batch sends when a job comes to another state, or blocks its queue (`kind`): its description."""
    from moto.events.models import events_backends

    # https://docs.aws.amazon.com/batch/latest/userguide/batch_job_events.html: none of the submission itself.
    backend = events_backends[account][region]
    if document["status"] == "SUBMITTED" or not any(bus.rules for bus in backend.event_buses.values()):
        return
    event = {
        "Source": "aws.batch",
        "DetailType": kind,
        "Resources": [document["jobArn"]],
        "Detail": json.dumps(document),
    }
    backend.put_events([event])
