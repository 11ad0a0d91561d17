"""What a stack promises, built as the models of accel.contract: a promise that does not hold fails the update."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from accel.contract.access import AwsAccess
from accel.contract.network import AwsNetwork
from accel.contract.targets import (
    AwsBatchDefinition,
    AwsBatchEnvironment,
    AwsBatchTarget,
    write,
)
from accel.rules.aws_clusters import efa_cards
from components.aws.batch_roles import BatchRoles
from components.aws.claim_table import ClaimTable
from components.aws.code_bucket import CodeBucket
from components.aws.compute_environment import ComputeEnvironment
from components.aws.image_repository import ImageRepository
from components.aws.job_definition import JobDefinition
from components.aws.job_log import JobLog
from components.aws.job_queue import JobQueue
from components.aws.published_targets import PublishedTargets, PublishedTargetsArgs, PublishedTargetsSpec

from .config import Aws
from .promised import promised


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
    """Of every target: `allowances`, or nothing."""
    code: CodeBucket | None = None


def export_aws(
    section: Aws, parts: AwsParts, on_aws: pulumi.ResourceOptions
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """Exports `repositories`, and publishes the targets where `jobs` reads them without Pulumi; the targets."""
    prefix = definition_prefix()
    targets = {name: _target(section, parts, name, prefix) for name in section.queues}
    PublishedTargets(
        "targets",
        PublishedTargetsArgs(
            spec=PublishedTargetsSpec(path=targets_path()),
            targets={
                name: target.apply(lambda value: json.dumps(value, sort_keys=True)) for name, target in targets.items()
            },
        ),
        on_aws,
    )
    pulumi.export("repositories", {name: repository.url for name, repository in parts.repositories.items()})
    return targets


def definition_prefix() -> str:
    """Of the definitions that jobs register."""
    return f"{pulumi.get_project()}-{pulumi.get_stack()}"


def targets_path() -> str:
    """Of the SSM parameters that hold the targets."""
    return f"/{pulumi.get_project()}/{pulumi.get_stack()}/targets"


def export_access(submit_policy_arns: pulumi.Output[list[str]]) -> None:
    """Exports `access`."""
    access = promised(
        submit_policy_arns, lambda arns: AwsAccess(submit_policy_arns=arns).model_dump(mode="json", by_alias=True)
    )
    pulumi.export("access", access)


def export_network(
    vpc_id: pulumi.Input[str],
    subnet_ids: pulumi.Input[list[str]],
    security_group_ids: pulumi.Input[list[str]],
) -> None:
    """Exports `network`."""
    pulumi.export(
        "network",
        promised(
            pulumi.Output.all(vpc_id=vpc_id, subnet_ids=subnet_ids, security_group_ids=security_group_ids),
            lambda ids: AwsNetwork(**ids).model_dump(mode="json", by_alias=True),
        ),
    )


def _target(section: Aws, parts: AwsParts, queue: str, prefix: str) -> pulumi.Output[dict[str, Any]]:
    """One queue as a target; known once everything that it names exists."""
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
    return promised(
        wired,
        lambda arns: write({queue: _aws_batch(section, queue, prefix, arns)})[queue],
        optional=tuple(
            name for name, part in (("claim_table", parts.claims), ("code_bucket", parts.code)) if part is None
        ),
    )


def _aws_batch(section: Aws, queue: str, prefix: str, arns: Mapping[str, Any]) -> AwsBatchTarget:
    return AwsBatchTarget(
        region=section.region,
        queue_arn=arns["queue"],
        environments=[
            _environment(section, key, arns["environments"][key]) for key in section.queues[queue].environments
        ],
        definitions={name: _definition(section, name, arn) for name, arn in arns["definitions"].items()},
        definition_prefix=prefix,
        log_group=arns["log_group"],
        job_role_arn=arns["job_role"],
        execution_role_arn=arns["execution_role"],
        claim_table=arns["claim_table"],
        shares=section.queues[queue].shares,
        allowances=arns.get("allowances"),
        code_bucket=arns["code_bucket"],
        budget_stops=any(budget.stop for budget in section.budgets.values()),
    )


def _environment(section: Aws, key: str, arn: str) -> AwsBatchEnvironment:
    spec = section.environments[key]
    return AwsBatchEnvironment(
        name=key,
        arn=arn,
        capacity=spec.capacity,
        instance_types=spec.instance_types,
        max_vcpus=spec.max_vcpus,
        disk_gib=spec.instance.disk_gib,
        close=spec.placement == "cluster" or spec.in_block,
        efa_interfaces=len(efa_cards(spec.instance_types)) if spec.efa else 0,
        local_nvme=spec.local_nvme,
        buckets=spec.buckets,
    )


def _definition(section: Aws, name: str, arn: str) -> AwsBatchDefinition:
    spec = section.definitions[name]
    return AwsBatchDefinition(
        arn=arn,
        image=spec.image,
        vcpus=spec.vcpus,
        memory_mib=spec.memory_mib,
        gpus=spec.gpus,
        shm_mib=spec.shm_mib,
        secrets=spec.secrets,
        attempts=spec.attempts,
        timeout_s=spec.timeout_s,
    )
