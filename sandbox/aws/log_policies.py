"""Resource policies of CloudWatch Logs beyond moto's: one of each log group, and whether they let EventBridge write.

An account has ten that name no log group, and each group may have one of its own. Source: PutResourcePolicy of
botocore's service model logs/2014-03-28.
"""

import json
import uuid
from typing import Any

from .permissions import matches

EVENTS = "events.amazonaws.com"
_NEEDED = ("logs:CreateLogStream", "logs:PutLogEvents")


def install() -> None:
    """Let moto's API know policies of groups, and its rules write only where a policy admits them."""
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
        arn = self._get_param("resourceArn")
        if not arn and self._get_param("policyScope") != "RESOURCE":
            return listed(self)
        groups = [_group(self.logs_backend, arn)] if arn else self.logs_backend.groups.values()
        return json.dumps({"resourcePolicies": [each.policy for each in groups if each.__dict__.get("policy")]})

    def delete_one(self: Any) -> str:
        arn = self._get_param("resourceArn")
        if not arn:
            return delete(self)
        _group(self.logs_backend, arn).policy = None
        return ""

    def write_if_admitted(rule: Any, name: str, event: Any) -> None:
        # AWS drops what it may not write, and says so in no place that the account sees but FailedInvocations.
        if admitted(rule.account_id, rule.region_name, name, rule.arn):
            write(rule, name, event)

    LogsResponse.put_resource_policy, LogsResponse.describe_resource_policies = put_one, list_them
    LogsResponse.delete_resource_policy, Rule._send_to_cw_log_group = delete_one, write_if_admitted


def admitted(account: str, region: str, group_name: str, rule_arn: str) -> bool:
    """Whether a policy of the account or of the group lets a rule of EventBridge write to it."""
    from moto.logs.models import logs_backends

    backend: Any = logs_backends[account][region]
    group = backend.groups[group_name]
    own = group.__dict__.get("policy")
    documents = [policy.policy_document for policy in backend.resource_policies.values()]
    statements = [
        each
        for document in [*documents, *([own["policyDocument"]] if own else [])]
        for each in json.loads(document)["Statement"]
        if matches(each.get("Principal", {}).get("Service", []), EVENTS)
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
