"""The outputs that a stack promises, built as the models of accel.contract: an invalid promise fails the update."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from accel.contract.access import AwsAccess
from accel.contract.network import AwsNetwork
from accel.contract.target_layout import FOLDER, without_definitions
from accel.contract.targets import write
from components.aws.batch_roles import BatchRoles
from components.aws.claim_table import ClaimTable
from components.aws.code_bucket import CodeBucket
from components.aws.compute_environment import ComputeEnvironment
from components.aws.image_repository import ImageRepository
from components.aws.job_definition import JobDefinition
from components.aws.job_log import JobLog
from components.aws.job_queue import JobQueue
from components.aws.published_targets import PublishedTargets, PublishedTargetsArgs, PublishedTargetsSpec

from .aws.config import Aws
from .aws.targets import aws_batch, split, text
from .export_model import promise_output
from .names import stack_prefix, targets_path


@dataclass(frozen=True)
class AwsParts:
    """The components of an AWS section, by the author's keys."""

    environments: Mapping[str, ComputeEnvironment]
    queues: Mapping[str, JobQueue]
    definitions: Mapping[str, JobDefinition]
    roles: BatchRoles
    log: JobLog
    claims: ClaimTable | None
    repositories: Mapping[str, ImageRepository]
    paid: Mapping[str, pulumi.Output[Any]]
    """`allowances` of every target, or nothing."""
    code: CodeBucket | None = None
    allowances: Any = None
    """Same as `paid`, before the ledger has its name."""


def export_aws(
    section: Aws, parts: AwsParts, on_aws: pulumi.ResourceOptions
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """Export `repositories`, and publish the targets where `jobs` reads them without Pulumi."""
    prefix = definition_prefix()
    targets = {name: _target(section, parts, name, prefix) for name in section.queues}
    PublishedTargets("targets", _published(section, parts, targets), on_aws)
    pulumi.export("repositories", {name: repository.url for name, repository in parts.repositories.items()})
    return targets


def _published(
    section: Aws, parts: AwsParts, targets: Mapping[str, pulumi.Output[dict[str, Any]]]
) -> PublishedTargetsArgs:
    spec = PublishedTargetsSpec(path=targets_path())
    if not split(section, parts.allowances):
        return PublishedTargetsArgs(spec=spec, targets={name: each.apply(text) for name, each in targets.items()})
    # No value of a target is known in a destroy of an incompletely created stack.
    known = {name: each.apply(lambda one: one or {FOLDER: {}}) for name, each in targets.items()}
    one = next(iter(known.values()))
    return PublishedTargetsArgs(
        spec=spec,
        targets={name: each.apply(lambda target: text(without_definitions(target))) for name, each in known.items()},
        definitions={
            key: one.apply(lambda target, key=key: text(target[FOLDER].get(key))) for key in section.definitions
        },
    )


def definition_prefix() -> str:
    """Return the prefix of the definitions that jobs register."""
    return stack_prefix()


def export_access(submit_policy_arns: pulumi.Output[list[str]]) -> None:
    access = promise_output(
        submit_policy_arns, lambda arns: AwsAccess(submit_policy_arns=arns).model_dump(mode="json", by_alias=True)
    )
    pulumi.export("access", access)


def export_network(
    vpc_id: pulumi.Input[str],
    subnet_ids: pulumi.Input[list[str]],
    security_group_ids: pulumi.Input[list[str]],
) -> None:
    pulumi.export(
        "network",
        promise_output(
            pulumi.Output.all(vpc_id=vpc_id, subnet_ids=subnet_ids, security_group_ids=security_group_ids),
            lambda ids: AwsNetwork(**ids).model_dump(mode="json", by_alias=True),
        ),
    )


def _target(section: Aws, parts: AwsParts, queue: str, prefix: str) -> pulumi.Output[dict[str, Any]]:
    keys = section.queues[queue].environments
    wired = pulumi.Output.all(
        queue=parts.queues[queue].arn,
        environments={key: parts.environments[key].arn for key in keys},
        definitions={name: definition.arn for name, definition in parts.definitions.items()},
        log_group=parts.log.name,
        job_role=parts.roles.job_role_arn,
        execution_role=parts.roles.execution_role_arn,
        claim_table=parts.claims.name if parts.claims else None,
        code_bucket=parts.code.bucket if parts.code else None,
        **parts.paid,
    )
    return promise_output(
        wired,
        lambda arns: write({queue: aws_batch(section, queue, prefix, arns)})[queue],
        optional=tuple(
            name for name, part in (("claim_table", parts.claims), ("code_bucket", parts.code)) if part is None
        ),
    )
