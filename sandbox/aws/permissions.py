"""Permissions of callers and roles.

The actions that each call needs are checked against the policies of the caller's access key. A role's own and attached
policies, with their actions and resources, decide whether it allows a request.

Calls are recorded by key, whether or not the key has policies; a key without policies may do everything. Not
implemented: resources of EC2, the policies of a resource and of the organisation, boundaries, transactions of DynamoDB;
conditions, which are assumed to be met for a role. Sources: the service authorization reference
(https://docs.aws.amazon.com/service-authorization/latest/reference/), as cfn-lint has it, and
https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html for S3;
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jmespath

from accel.catalog.aws_partitions import partition_of

from .answers import QUERY, Answer, error
from .calls import Call

_PREFIXES = {"monitoring": "cloudwatch"}
"""Prefix of actions, by the name that requests are signed with."""

_FREE = {("sts", "GetCallerIdentity"), ("ec2", "DescribeTags")}
"""Calls that need no permission here. The first needs none on AWS:
https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html. Only our stand-in for the provider makes
the second, for what moto does not list."""

_ACTIONS: Mapping[tuple[str, str], str] = {
    ("lambda", "Invoke"): "lambda:InvokeFunction",
    ("budgets", "DescribeBudget"): "budgets:ViewBudget",
    ("budgets", "DescribeBudgets"): "budgets:ViewBudget",
    ("budgets", "DescribeNotificationsForBudget"): "budgets:ViewBudget",
    ("budgets", "DescribeSubscribersForNotification"): "budgets:ViewBudget",
    **{
        ("budgets", f"{verb}{thing}"): "budgets:ModifyBudget"
        for verb in ("Create", "Update", "Delete")
        for thing in ("Budget", "Notification", "Subscriber")
    },
    ("s3", "HeadBucket"): "s3:ListBucket",
    ("s3", "ListObjects"): "s3:ListBucket",
    ("s3", "ListObjectsV2"): "s3:ListBucket",
    ("s3", "ListObjectVersions"): "s3:ListBucketVersions",
    ("s3", "ListBuckets"): "s3:ListAllMyBuckets",
    ("s3", "HeadObject"): "s3:GetObject",
    ("s3", "DeleteObjects"): "s3:DeleteObject",
    ("s3", "CopyObject"): "s3:PutObject",
    ("s3", "CreateMultipartUpload"): "s3:PutObject",
    ("s3", "UploadPart"): "s3:PutObject",
    ("s3", "CompleteMultipartUpload"): "s3:PutObject",
    ("s3", "DeleteBucketTagging"): "s3:PutBucketTagging",
    ("s3", "GetBucketLifecycleConfiguration"): "s3:GetLifecycleConfiguration",
    ("s3", "PutBucketLifecycleConfiguration"): "s3:PutLifecycleConfiguration",
    ("s3", "DeleteBucketLifecycle"): "s3:PutLifecycleConfiguration",
    ("s3", "GetBucketEncryption"): "s3:GetEncryptionConfiguration",
    ("s3", "PutBucketEncryption"): "s3:PutEncryptionConfiguration",
    ("s3", "DeleteBucketEncryption"): "s3:PutEncryptionConfiguration",
    ("s3", "GetPublicAccessBlock"): "s3:GetBucketPublicAccessBlock",
    ("s3", "PutPublicAccessBlock"): "s3:PutBucketPublicAccessBlock",
    ("s3", "DeletePublicAccessBlock"): "s3:PutBucketPublicAccessBlock",
}

_TAGGING = {
    ("ec2", ""): "ec2:CreateTags",
    ("ssm", ""): "ssm:AddTagsToResource",
    ("iam", "CreateRole"): "iam:TagRole",
    ("iam", "CreatePolicy"): "iam:TagPolicy",
    ("iam", "CreateInstanceProfile"): "iam:TagInstanceProfile",
}
"""Additional action that a request with tags needs, for an operation or for all of a service; elsewhere it is
`<service>:TagResource`."""
_TAGS = r"(Resource)?Tags?(Specification)?(\.member)?(\.1\b.*)?|tags"

_ANYWHERE = {
    *("batch:DescribeComputeEnvironments", "batch:DescribeJobDefinitions", "batch:DescribeJobQueues"),
    *("batch:DescribeJobs", "batch:DescribeSchedulingPolicies", "batch:ListJobs", "logs:DescribeLogGroups"),
    *("logs:DeleteResourcePolicy", "logs:DescribeResourcePolicies", "logs:PutResourcePolicy"),
    *("ssm:DescribeParameters", "s3:ListAllMyBuckets"),
}
"""Actions for which IAM knows no resource: a policy has to allow them on `*`."""

_RESOURCES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "batch": (
        ("computeEnvironmentName", "compute-environment/{}"),
        ("jobQueueName", "job-queue/{}"),
        ("jobDefinitionName", "job-definition/{}"),
        ("computeEnvironment", "compute-environment/{}"),
        ("jobQueue", "job-queue/{}"),
        ("jobDefinition", "job-definition/{}"),
        ("name", "scheduling-policy/{}"),
        ("resourceArn || arn", "{}"),
        ("jobId", "job/{}"),
    ),
    "budgets": (("BudgetName || Budget.BudgetName || NewBudget.BudgetName", ":budget/{}"), ("ResourceARN", "{}")),
    "cloudwatch": (
        ("AlarmName || AlarmNames", "alarm:{}"),
        ("DashboardName || DashboardNames", ":dashboard/{}"),
        ("ResourceARN", "{}"),
    ),
    "dynamodb": (("TableName", "table/{}"), ("ResourceArn", "{}")),
    "ecr": (("repositoryName || repositoryNames", "repository/{}"), ("resourceArn", "{}")),
    "events": (("Name || Rule", "rule/{}"), ("ResourceARN", "{}")),
    "iam": (
        ("InstanceProfileName", ":instance-profile/{}"),
        ("RoleName", ":role/{}"),
        ("PolicyArn", "{}"),
        ("PolicyName", ":policy/{}"),
    ),
    "lambda": (("FunctionName", "function:{}"), ("Resource", "{}")),
    "logs": (
        ("logGroupName && logStreamName && join(':log-stream:', [logGroupName, logStreamName])", "log-group:{}"),
        ("logGroupName", "log-group:{}"),
        ("resourceArn", "{}"),
    ),
    "s3": (("Bucket && Key && join('/', [Bucket, Key]) || Bucket", "arn:{partition}:s3:::{}"),),
    "sns": (("TopicArn || SubscriptionArn || ResourceArn", "{}"), ("Name", "{}")),
    "ssm": (("Name || Names || ResourceId || Path", "parameter{}"),),
}
"""Parameters that name the resource of a call (the first that a request has counts), and the end of its ARN after the
account. The ARN has no region where that end begins with a colon. A value that is an ARN stands for itself."""

_SUBMITTED = (("jobQueue", "job-queue/{}"), ("jobDefinition", "job-definition/{}"), ("'new'", "job/{}"))
"""Resources of SubmitJob, which needs all of them, and the tags of a request on the last, which has no id yet."""

_PASSES: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("batch", "CreateComputeEnvironment"): (
        ("serviceRole", "batch.amazonaws.com"),
        ("computeResources.instanceRole", "ec2.amazonaws.com"),
    ),
    ("batch", "UpdateComputeEnvironment"): (("computeResources.instanceRole", "ec2.amazonaws.com"),),
    ("batch", "RegisterJobDefinition"): (
        ("containerProperties.[jobRoleArn, executionRoleArn]", "ecs-tasks.amazonaws.com"),
    ),
    ("lambda", "CreateFunction"): (("Role", "lambda.amazonaws.com"),),
    ("lambda", "UpdateFunctionConfiguration"): (("Role", "lambda.amazonaws.com"),),
    ("events", "PutTargets"): (("Targets[].RoleArn", "events.amazonaws.com"),),
    ("ec2", "CreateFlowLogs"): (("DeliverLogsPermissionArn", "vpc-flow-logs.amazonaws.com"),),
    ("iam", "AddRoleToInstanceProfile"): (("RoleName", "ec2.amazonaws.com"),),
}
"""Roles that a call hands to a service, which needs iam:PassRole for them. Source:
https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html"""


_BATCH_ROLE = "role/aws-service-role/batch.amazonaws.com/AWSServiceRoleForBatch"


@dataclass(frozen=True)
class Need:
    """One action on one resource; `context` holds condition keys in lower case."""

    action: str
    resource: str
    context: tuple[tuple[str, str], ...] = ()


@dataclass
class Callers:
    """Callers so far, by the name of their access key."""

    account: str
    policies: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    needs: dict[str, set[Need]] = field(default_factory=dict[str, set[Need]])
    _linked: bool = False

    def control(self, method: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Set the policies of a caller (POST), or drop all (DELETE); return what callers have needed so far."""
        if method == "POST":
            self.policies[request["caller"]] = list(request["policies"])
            self.needs.pop(request["caller"], None)
        elif method == "DELETE":
            self.policies.clear()
        shown = {key: sorted({(need.action, need.resource) for need in needs}) for key, needs in self.needs.items()}
        return {"needed": shown}

    def refusal(self, call: Call) -> Answer | None:
        if not call.operation or (call.service, call.operation) in _FREE:
            return None
        needs, policies = list(self._needs(call)), self.policies.get(call.key)
        self.needs.setdefault(call.key, set()).update(needs)
        for need in needs if policies is not None else ():
            if not any(_allows(one, need) for policy in policies or () for one in policy["Statement"]):
                return _refused(call, need, f"arn:{partition_of(call.region).name}:iam::{self.account}:user/{call.key}")
        self._linked = self._linked or any(need.action == "iam:CreateServiceLinkedRole" for need in needs)
        return None

    def _needs(self, call: Call) -> Iterator[Need]:
        prefix, at = _PREFIXES.get(call.service, call.service), (call.service, call.operation)
        here = tuple(_request_keys(call, self.account))
        actions = [_ACTIONS.get(at, f"{prefix}:{call.operation}")]
        making = re.match("Create|Put|Register|Allocate|Submit", call.operation) and call.service != "s3"
        if making and any(re.fullmatch(_TAGS, name) and value for name, value in call.parameters.items()):
            actions.append(_TAGGING.get(at) or _TAGGING.get((prefix, "")) or f"{prefix}:TagResource")
        for action in actions:
            for resource in ["*"] if action in _ANYWHERE else self._resources(prefix, call, action):
                yield Need(action, resource, (*here, *_resource_keys(call, self.account, resource)))
        for path, service in _PASSES.get(at, ()):
            for role in _found(path, call):
                for arn in self._roles(role, call):
                    yield Need("iam:PassRole", arn, (*here, ("iam:passedtoservice", service)))
        if at == ("batch", "CreateComputeEnvironment") and not (call.parameters.get("serviceRole") or self._linked):
            linked = (("iam:awsservicename", "batch.amazonaws.com"),)
            yield Need("iam:CreateServiceLinkedRole", self._arn("iam", f":{_BATCH_ROLE}", call), (*here, *linked))

    def _arn(self, prefix: str, end: str, call: Call) -> str:
        region = "" if end.startswith(":") else call.region
        return f"arn:{partition_of(call.region).name}:{prefix}:{region}:{self.account}:{end.removeprefix(':')}"

    def _resources(self, prefix: str, call: Call, action: str) -> list[str]:
        if call.operation == "SubmitJob":
            rows = _SUBMITTED if action == "batch:SubmitJob" else _SUBMITTED[-1:]
            return [self._named(prefix, end, name, call) for path, end in rows for name in _found(path, call)]
        for path, end in _RESOURCES.get(prefix, ()):
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
        """Return the ARN of a role by its name, and of those in an instance profile."""
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
        and _met(statement.get("Condition", {}), dict(need.context))
    )


def _refused(call: Call, need: Need, user: str) -> Answer:
    """Refuse in the words of https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html"""
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


_OPERATORS: Mapping[str, Callable[[list[str], str], bool]] = {
    "StringEquals": lambda wanted, value: value in wanted,
    "StringNotLike": lambda wanted, value: not matches(wanted, value),
    "Bool": lambda wanted, value: value.lower() in wanted,
}
_ALL, _IF_EXISTS = "ForAllValues:", "IfExists"


def _met(conditions: Mapping[str, Mapping[str, Any]], context: Mapping[str, str]) -> bool:
    """Return whether a request with these keys, each of one value, fulfils a statement's conditions. Raise KeyError for
    an operator that is not implemented. Source:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html"""
    return all(
        _holds(operator, key.lower(), wanted if isinstance(wanted, list) else [wanted], context)
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    )


def _holds(operator: str, key: str, wanted: list[str], context: Mapping[str, str]) -> bool:
    if operator == "Null":
        return str(key not in context).lower() in wanted
    plain = operator.removeprefix(_ALL).removesuffix(_IF_EXISTS)
    test = _OPERATORS[plain]
    # Without the key ForAllValues and IfExists hold, and so do negated operators.
    return test(wanted, context[key]) if key in context else operator != plain or "Not" in plain


_CONTAINERS = "[containerProperties, nodeProperties.nodeRangeProperties[].container][]"
"""Containers of a job definition. A field that a container leaves out adds no key."""


def _request_keys(call: Call, account: str) -> Iterator[tuple[str, str]]:
    """Yield the condition keys, in lower case, that a request has whatever its resource is."""
    yield "aws:requestedregion", call.region
    given = dict(call.parameters)
    if call.service == "batch":
        yield from ((f"aws:requesttag/{name}".lower(), value) for name, value in (given.get("tags") or {}).items())
        containers: list[Any] = jmespath.search(_CONTAINERS, given) or []
        if said := [each["privileged"] for each in containers if each and "privileged" in each]:
            yield "batch:privileged", str(any(said)).lower()
    if call.service == "dynamodb" and (row := given.get("Key") or given.get("Item")):
        from moto.dynamodb.models import dynamodb_backends

        table: Any = dynamodb_backends[account][call.region].tables.get(given["TableName"])
        if table:
            yield "dynamodb:leadingkeys", str(next(iter(row.get(table.hash_key_attr, {}).values()), ""))


def _resource_keys(call: Call, account: str, resource: str) -> Iterator[tuple[str, str]]:
    """Yield the tags of a job as condition keys. Tasks have none of their own:
    https://docs.aws.amazon.com/batch/latest/APIReference/API_TagResource.html"""
    if call.service == "batch" and ":job/" in resource:
        from moto.batch.models import batch_backends

        found: dict[str, str] = batch_backends[account][call.region].list_tags_for_resource(resource)
        yield from ((f"aws:resourcetag/{name}".lower(), value) for name, value in found.items())


def denial(iam: Any, role_arn: str, action: str, resource: str) -> str | None:
    """Return AWS's refusal where the role does not allow the action; None where it does, and for an unknown role."""
    from moto.iam.exceptions import NotFoundException

    try:
        role = iam.get_role_by_arn(role_arn)
    except NotFoundException:
        return None
    documents = [*role.policies.values(), *(policy.document for policy in role.managed_policies.values())]
    effects = {
        statement["Effect"]
        for document in documents
        for statement in _listed(json.loads(document)["Statement"])
        if matches(statement.get("Action", []), action, re.IGNORECASE)
        and matches(statement.get("Resource", []), resource)
    }
    if effects == {"Allow"}:
        return None
    why = "with an explicit deny" if effects else f"because no identity-based policy allows the {action} action"
    user = role_arn.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/")
    return f"AccessDeniedException: User: {user} is not authorized to perform: {action} on resource: {resource} {why}"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def matches(patterns: Any, text: str, flags: int = 0) -> bool:
    signs = {"*": ".*", "?": "."}
    return any(
        re.fullmatch("".join(signs.get(each, re.escape(each)) for each in str(pattern)), text, flags)
        for pattern in _listed(patterns)
    )
