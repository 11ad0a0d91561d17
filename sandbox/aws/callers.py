"""Whether who calls may do it: the actions that each call needs, held against the policies of the caller's access key.

Calls are recorded by key, whether or not the key has policies; one without may do everything. Not done: resources of
EC2, the policies of a resource, boundaries, transactions of DynamoDB.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jmespath

from accel.catalog.aws_partitions import partition_of

from . import conditions, contexts
from .answers import QUERY, Answer, error
from .calls import Call
from .iam_actions import ACTIONS, ANYWHERE, FREE, PASSES, PREFIXES, RESOURCES, SUBMITTED, TAGGING, TAGS
from .permissions import matches

BATCH_ROLE = "role/aws-service-role/batch.amazonaws.com/AWSServiceRoleForBatch"


@dataclass(frozen=True)
class Need:
    """One action on one resource; `context` holds condition keys in lower case."""

    action: str
    resource: str
    context: tuple[tuple[str, str], ...] = ()


@dataclass
class Callers:
    """Everyone who has called, by the name of their access key."""

    account: str
    policies: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    needs: dict[str, set[Need]] = field(default_factory=dict[str, set[Need]])
    _linked: bool = False

    def control(self, method: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """POST sets the policies of a caller, DELETE drops all; each answers what callers have needed so far."""
        if method == "POST":
            self.policies[request["caller"]] = list(request["policies"])
            self.needs.pop(request["caller"], None)
        elif method == "DELETE":
            self.policies.clear()
        shown = {key: sorted({(need.action, need.resource) for need in needs}) for key, needs in self.needs.items()}
        return {"needed": shown}

    def refusal(self, call: Call) -> Answer | None:
        """What AWS answers to a call that is not allowed, for the first action that is not; None to one that is."""
        if not call.operation or (call.service, call.operation) in FREE:
            return None
        needs, policies = list(self._needs(call)), self.policies.get(call.key)
        self.needs.setdefault(call.key, set()).update(needs)
        for need in needs if policies is not None else ():
            if not any(_allows(one, need) for policy in policies or () for one in policy["Statement"]):
                return _refused(call, need, f"arn:{partition_of(call.region).name}:iam::{self.account}:user/{call.key}")
        self._linked = self._linked or any(need.action == "iam:CreateServiceLinkedRole" for need in needs)
        return None

    def _needs(self, call: Call) -> Iterator[Need]:
        prefix, at = PREFIXES.get(call.service, call.service), (call.service, call.operation)
        here = tuple(contexts.of_request(call, self.account))
        actions = [ACTIONS.get(at, f"{prefix}:{call.operation}")]
        making = re.match("Create|Put|Register|Allocate|Submit", call.operation) and call.service != "s3"
        if making and any(re.fullmatch(TAGS, name) and value for name, value in call.parameters.items()):
            actions.append(TAGGING.get(at) or TAGGING.get((prefix, "")) or f"{prefix}:TagResource")
        for action in actions:
            for resource in ["*"] if action in ANYWHERE else self._resources(prefix, call, action):
                yield Need(action, resource, (*here, *contexts.of_resource(call, self.account, resource)))
        for path, service in PASSES.get(at, ()):
            for role in _found(path, call):
                for arn in self._roles(role, call):
                    yield Need("iam:PassRole", arn, (*here, ("iam:passedtoservice", service)))
        if at == ("batch", "CreateComputeEnvironment") and not (call.parameters.get("serviceRole") or self._linked):
            linked = (("iam:awsservicename", "batch.amazonaws.com"),)
            yield Need("iam:CreateServiceLinkedRole", self._arn("iam", f":{BATCH_ROLE}", call), (*here, *linked))

    def _arn(self, prefix: str, end: str, call: Call) -> str:
        region = "" if end.startswith(":") else call.region
        return f"arn:{partition_of(call.region).name}:{prefix}:{region}:{self.account}:{end.removeprefix(':')}"

    def _resources(self, prefix: str, call: Call, action: str) -> list[str]:
        if call.operation == "SubmitJob":
            rows = SUBMITTED if action == "batch:SubmitJob" else SUBMITTED[-1:]
            return [self._named(prefix, end, name, call) for path, end in rows for name in _found(path, call)]
        for path, end in RESOURCES.get(prefix, ()):
            if names := _found(path, call):
                return [self._named(prefix, end, name, call) for name in names]
        return ["*"]

    def _named(self, prefix: str, end: str, name: str, call: Call) -> str:
        if name.startswith("arn:"):
            return name
        if end.startswith("arn:"):
            return end.replace("{partition}", partition_of(call.region).name).replace("{}", name)
        if prefix == "ssm" and not name.startswith("/"):
            name = f"/{name}"
        return self._arn(prefix, end.replace("{}", name), call)

    def _roles(self, given: str, call: Call) -> list[str]:
        """The ARN of a role by its name, and of those in an instance profile."""
        if ":instance-profile/" not in given:
            return [given if given.startswith("arn:") else self._arn("iam", f":role/{given}", call)]
        from moto.iam.models import iam_backends

        profiles: Any = iam_backends[self.account][partition_of(call.region).name].instance_profiles.values()
        return [role.arn for one in profiles if one.arn == given for role in one.roles]


def _found(path: str, call: Call) -> list[str]:
    value = jmespath.search(path, dict(call.parameters))
    return [each for each in (value if isinstance(value, list) else [value]) if each]


def _allows(statement: Mapping[str, Any], need: Need) -> bool:
    return (
        statement["Effect"] == "Allow"
        and matches(statement["Action"], need.action, re.IGNORECASE)
        and matches(statement["Resource"], need.resource)
        and conditions.met(statement.get("Condition", {}), dict(need.context))
    )


def _refused(call: Call, need: Need, user: str) -> Answer:
    """In the words of https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html, which each
    protocol wraps in its own way."""
    said = (
        f"User: {user} is not authorized to perform: {need.action} on resource: {need.resource} "
        f"because no identity-based policy allows the {need.action} action"
    )
    match call.service:
        case "ec2":
            said = f"You are not authorized to perform this operation. {said}"
            return error("ec2", 403, "UnauthorizedOperation", said)
        case "s3" | "batch" | "lambda":
            return error(call.service, 403, "AccessDenied" if call.service == "s3" else "AccessDeniedException", said)
        case service if service in QUERY:
            return error(service, 403, "AuthorizationError" if service == "sns" else "AccessDenied", said)
        case service:
            return error(service, 400, "AccessDeniedException", said)
