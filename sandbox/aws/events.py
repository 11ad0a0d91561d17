"""EventBridge and SNS of the sandbox: rules reach topics, nothing leaves this machine, and jobs make events.

A rule writes to a log group only where a resource policy of CloudWatch Logs allows it. An account has ten policies that
name no log group, and each group may have one of its own, which moto does not know. Source: PutResourcePolicy of
botocore's service model logs/2014-03-28.
"""

import json
import uuid
from typing import Any
from urllib.parse import urlsplit

from .permissions import matches

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def install() -> None:
    """Patch moto: every rule publishes to the topics among its targets, and published messages stay here."""
    from moto.events.models import EventTemplateParser, Rule
    from moto.sns.models import Subscription, sns_backends

    _install_log_policies()
    to_others, publish = Rule.send_to_targets, Subscription.publish

    def send(rule: Any, event: Any, transform_input: bool = True) -> None:
        # moto lets a rule that has only a schedule match every event.
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
        # moto posts to the endpoint: a demonstration must not page anybody.
        web = subscription.protocol in ("http", "https")
        if not web or urlsplit(subscription.endpoint).hostname in _LOOPBACK:
            publish(subscription, *args, **named)

    Rule.send_to_targets, Subscription.publish = send, publish_here


def send_job_change(account: str, region: str, document: Any, kind: str = "Batch Job State Change") -> None:
    """Send AWS Batch's event for a job that changed state, or blocks its queue (`kind`): the job's description."""
    from moto.events.models import events_backends

    # https://docs.aws.amazon.com/batch/latest/userguide/batch_job_events.html: no event for the submission itself.
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


_EVENTS = "events.amazonaws.com"
_NEEDED = ("logs:CreateLogStream", "logs:PutLogEvents")


def _install_log_policies() -> None:
    """Patch moto: its API knows policies of log groups, and its rules write only where a policy allows it."""
    from moto.events.models import Rule
    from moto.logs.responses import LogsResponse

    put, listed, delete = (
        getattr(LogsResponse, f"{verb}_resource_polic{end}")
        for verb, end in (("put", "y"), ("describe", "ies"), ("delete", "y"))
    )
    write = Rule._send_to_cw_log_group

    def put_one(self: Any) -> str:
        arn, name = self._get_param("resourceArn"), self._get_param("policyName")
        if not arn:
            return put(self)
        group, before = _group(self.logs_backend, arn), self._get_param("expectedRevisionId")
        if name:
            _refuse("InvalidParameterException", "policyName and resourceArn cannot both be specified.")
        now = (group.__dict__.get("policy") or {}).get("revisionId")
        if now != before:
            _refuse("ConflictException", "The expected revision ID does not match the current revision.")
        group.policy = {
            "policyDocument": self._get_param("policyDocument"),
            "policyScope": "RESOURCE",
            "resourceArn": arn,
            "revisionId": str(uuid.uuid4()),
        }
        return json.dumps({"resourcePolicy": group.policy, "revisionId": group.policy["revisionId"]})

    def list_them(self: Any) -> str:
        # "When not specified, defaults to ACCOUNT": botocore's model of policyScope.
        if self._get_param("policyScope") != "RESOURCE":
            return listed(self)
        arn = self._get_param("resourceArn")
        groups = [_group(self.logs_backend, arn)] if arn else self.logs_backend.groups.values()
        return json.dumps({"resourcePolicies": [each.policy for each in groups if each.__dict__.get("policy")]})

    def delete_one(self: Any) -> str:
        arn = self._get_param("resourceArn")
        if not arn:
            return delete(self)
        _group(self.logs_backend, arn).policy = None
        return ""

    def write_if_admitted(rule: Any, name: str, event: Any) -> None:
        # AWS drops what it may not write, and shows that to the account only in FailedInvocations.
        if _admitted(rule.account_id, rule.region_name, name, rule.arn):
            write(rule, name, event)

    LogsResponse.put_resource_policy, LogsResponse.describe_resource_policies = put_one, list_them
    LogsResponse.delete_resource_policy, Rule._send_to_cw_log_group = delete_one, write_if_admitted


def _admitted(account: str, region: str, group_name: str, rule_arn: str) -> bool:
    """Return whether a policy of the account or of the group lets a rule of EventBridge write to it."""
    from moto.logs.models import logs_backends

    backend: Any = logs_backends[account][region]
    group = backend.groups[group_name]
    own = group.__dict__.get("policy")
    documents = [policy.policy_document for policy in backend.resource_policies.values()]
    statements = [
        each
        for document in [*documents, *([own["policyDocument"]] if own else [])]
        for each in json.loads(document)["Statement"]
        if matches(each.get("Principal", {}).get("Service", []), _EVENTS)
        and matches(each.get("Resource", []), f"{group.arn}:log-stream:one")
        and all(
            matches(patterns, rule_arn)
            for kind, keys in each.get("Condition", {}).items()
            for key, patterns in keys.items()
            if kind in ("ArnEquals", "ArnLike") and key == "aws:SourceArn"
        )
    ]
    return all(any(matches(each["Action"], action) for each in statements) for action in _NEEDED)


def _group(backend: Any, arn: str) -> Any:
    found = next((each for each in backend.groups.values() if each.arn == arn), None)
    return found or _refuse("ResourceNotFoundException", "The specified log group does not exist.")


def _refuse(code: str, message: str) -> Any:
    from moto.logs.exceptions import LogsClientError

    raise LogsClientError(code, message)
