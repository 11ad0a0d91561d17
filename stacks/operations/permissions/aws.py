"""Policies of AWS: a deployment needs those of the resources' types, of the passed roles and of the hooks."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from accel.catalog.aws_permissions import OPERATIONS, Operation, aws_permissions
from components.aws import draining, stop_hooks
from components.aws.budget_stop import BudgetStop
from components.aws.submit_policy import SubmitPolicy

from .program import ArnPrefix, RegisteredResource, place, registered_resources

if TYPE_CHECKING:
    from ...environment.config import Environment

Statement = dict[str, Any]
Policy = dict[str, Any]

MOST = 6144
"""Maximum characters of a managed policy, without white space. Source:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
ENVIRONMENT = "aws:batch/computeEnvironment:ComputeEnvironment"
REPOSITORY = "aws:ecr/repository:Repository"
ROLE = "aws:iam/role:Role"
TABLE = "aws:dynamodb/table:Table"
PROFILE = "aws:iam/instanceProfile:InstanceProfile"
ROLE_ARN = "arn:{partition}:iam::{account}:role/{name}"
DEFINITION = "aws:batch/jobDefinition:JobDefinition"
LINKED = "batch.amazonaws.com"
"""Owner of the service-linked role that CreateComputeEnvironment creates, as the caller, for an environment without a
service role. With that role Batch creates those of Spot, of Auto Scaling and of ECS (BatchServiceRolePolicy). Sources:
https://docs.aws.amazon.com/batch/latest/userguide/using-service-linked-roles-batch-general.html,
https://docs.aws.amazon.com/aws-managed-policy/latest/reference/BatchServiceRolePolicy.html"""
TASKS, INSTANCES = "ecs-tasks.amazonaws.com", "ec2.amazonaws.com"
THROUGH_BATCH = (TASKS, INSTANCES)
"""Services whose roles Batch takes and passes on."""


def deployer(resources: Sequence[RegisteredResource], at: ArnPrefix) -> list[Policy]:
    """Return the policies for an update, a refresh and a destroy."""
    own = _merged([*_of_types(resources, at, OPERATIONS), *_of_keys(resources), *_of_hooks(resources, at)])
    return pack_policies([*own, *_passed(resources, at), *_linked(resources, at)])


def reader(resources: Sequence[RegisteredResource], at: ArnPrefix) -> list[Policy]:
    """Return the policies for a preview, with --refresh too."""
    return pack_policies(_merged(_of_types(resources, at, ("read",))))


def submitter(resources: Sequence[RegisteredResource]) -> list[Policy]:
    return [
        json.loads(one.inputs["policy"])
        for one in resources
        if one.type == "aws:iam/policy:Policy" and f"{SubmitPolicy.TYPE}::" in one.parent
    ]


def policies(environment: Environment, project: str, stack: str, purpose: str) -> list[Policy]:
    if environment.aws is None:
        return []
    alone = environment.model_copy(update={"gcp": None})
    resources, at = registered_resources(alone, project, stack), place(environment)
    match purpose:
        case "submit":
            return submitter(resources)
        case "preview":
            return reader(resources, at)
        case _:
            return deployer(resources, at)


def _names(resources: Sequence[RegisteredResource], kind: str) -> list[str]:
    return sorted({one.name for one in resources if one.type == kind})


def _of_types(
    resources: Sequence[RegisteredResource], at: ArnPrefix, operations: Collection[Operation]
) -> Iterator[Statement]:
    for kind in sorted({one.type for one in resources if one.type.startswith("aws:")}):
        for one in aws_permissions()[kind]:
            if one.operation not in operations:
                continue
            if not one.resource:
                yield _anywhere(one.actions, at)
            elif arns := [at.arn(one.resource, name) for name in _names(resources, one.names_of)]:
                yield _allow(one.actions, sorted(set(arns)))


def _of_keys(resources: Sequence[RegisteredResource]) -> Iterator[Statement]:
    """Yield permissions on keys: ECR creates a grant on a repository's key as the caller; others use their own name.
    Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/encryption-at-rest.html"""
    for one in resources:
        for encryption in one.inputs.get("encryptionConfigurations") or () if one.type == REPOSITORY else ():
            if key := encryption.get("kmsKey"):
                yield _allow(("kms:CreateGrant", "kms:DescribeKey", "kms:RetireGrant"), [key])


def _of_hooks(resources: Sequence[RegisteredResource], at: ArnPrefix) -> Iterator[Statement]:
    if _names(resources, ENVIRONMENT):
        yield _anywhere(draining.LOOKS, at)
        yield _allow(draining.ENDS, [at.arn("arn:{partition}:batch:{region}:{account}:job/*", "")])
    if _names(resources, BudgetStop.TYPE):
        template = "arn:{partition}:dynamodb:{region}:{account}:table/{name}"
        yield _allow(stop_hooks.READS, [at.arn(template, name) for name in _names(resources, TABLE)])


def _passed(resources: Sequence[RegisteredResource], at: ArnPrefix) -> Iterator[Statement]:
    by_service: dict[str, set[str]] = {}
    for service, role in [pair for one in resources for pair in _roles(one, resources, at)]:
        by_service.setdefault(service, set()).add(role)
    for service, arns in sorted(by_service.items()):
        # No page says under whose name Batch passes a role on: its own, or that of the service that assumes it.
        names = sorted({service, LINKED} if service in THROUGH_BATCH else {service})
        yield _allow(("iam:PassRole",), sorted(arns), {"iam:PassedToService": names})


def _roles(
    one: RegisteredResource, resources: Sequence[RegisteredResource], at: ArnPrefix
) -> Iterator[tuple[str, str]]:
    """Yield services and the roles that they get from one resource, both created and existing ones."""

    def arn(role: str) -> str:
        return role if role.startswith("arn:") else at.arn(ROLE_ARN, role)

    if one.type == ROLE:
        for statement in json.loads(one.inputs["assumeRolePolicy"])["Statement"]:
            service = statement["Principal"].get("Service", [])
            for each in [service] if isinstance(service, str) else service:
                yield each, arn(one.name)
    elif one.type == DEFINITION:
        document = json.loads(one.inputs.get("containerProperties") or "{}")
        yield from ((TASKS, arn(document[role])) for role in ("jobRoleArn", "executionRoleArn") if document.get(role))
    elif one.type == ENVIRONMENT:
        if role := one.inputs.get("serviceRole"):
            yield LINKED, arn(role)
        profile = str(one.inputs.get("computeResources", {}).get("instanceRole", "")).rpartition("/")[2]
        # IAM checks the role in a profile; an existing one is assumed to have the name of its profile, as AWS's own
        # has.
        if profile and profile not in _names(resources, PROFILE):
            yield INSTANCES, arn(profile)


def _linked(resources: Sequence[RegisteredResource], at: ArnPrefix) -> Iterator[Statement]:
    if any(one.type == ENVIRONMENT and not one.inputs.get("serviceRole") for one in resources):
        role = at.arn(ROLE_ARN, f"aws-service-role/{LINKED}/*")
        yield _allow(("iam:CreateServiceLinkedRole",), [role], {"iam:AWSServiceName": [LINKED]})


def _allow(actions: Collection[str], arns: list[str], condition: dict[str, list[str]] | None = None) -> Statement:
    only = {"Condition": {"StringEquals": condition}} if condition else {}
    return {"Effect": "Allow", "Action": sorted(actions), "Resource": arns, **only}


def _anywhere(actions: Collection[str], at: ArnPrefix) -> Statement:
    """Return a statement for actions without a resource, restricted to the environment's region."""
    return _allow(actions, ["*"], {"aws:RequestedRegion": [at.region]})


def _merged(statements: Iterable[Statement]) -> list[Statement]:
    found: dict[tuple[str, ...], Statement] = {}
    for one in statements:
        kept = found.setdefault(tuple(one["Resource"]), one)
        found[tuple(one["Resource"])] = {**kept, "Action": sorted({*kept["Action"], *one["Action"]})}
    return [found[arns] for arns in sorted(found)]


def size(document: Any) -> int:
    """Return the size as IAM counts it."""
    return len(json.dumps(document, separators=(",", ":")))


def pack_policies(statements: Iterable[Statement]) -> list[Policy]:
    found: list[Policy] = []
    for one in [part for whole in statements for part in _parts(whole)]:
        grown = _policy([*found[-1]["Statement"], one]) if found else None
        if grown and size(grown) <= MOST:
            found[-1] = grown
        else:
            found.append(_policy([one]))
    return found


def _policy(statements: list[Statement]) -> Policy:
    return {"Version": "2012-10-17", "Statement": statements}


def _parts(statement: Statement) -> Iterator[Statement]:
    arns = statement["Resource"]
    if size(_policy([statement])) <= MOST or len(arns) == 1:
        yield statement
        return
    for half in (arns[: len(arns) // 2], arns[len(arns) // 2 :]):
        yield from _parts({**statement, "Resource": half})
