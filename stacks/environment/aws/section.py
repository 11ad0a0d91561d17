"""The AWS section of an environment as components."""

from dataclasses import dataclass
from typing import Any

import pulumi

from accel.contract.network import AwsNetwork
from accel.contract.stack import read
from components.aws.batch_roles import BatchRoles, BatchRolesArgs
from components.aws.bucket_mounts import Access
from components.aws.claim_table import ClaimTable
from components.aws.code_bucket import CodeBucket
from components.aws.compute_environment import ComputeEnvironment, ComputeEnvironmentArgs
from components.aws.image_repository import ImageRepository
from components.aws.job_definition import EfsVolume, JobDefinition, JobDefinitionArgs
from components.aws.job_log import JobLog
from components.aws.job_queue import JobQueue, JobQueueArgs
from components.aws.network import Network, NetworkArgs
from components.aws.stop_hooks import joined_hooks
from components.aws.submit_policy import SubmitPolicy, SubmitPolicyArgs, SubmitPolicySpec

from .. import outputs
from ..allowances import Spending
from ..config import Aws, CreatedNetwork, Environment, ExistingNetwork, StackNetwork
from ..images_lock import pinned_images
from ..names import targets_path
from ..providers import aws_provider, tags
from . import budgets, monitoring


@dataclass(frozen=True)
class _Place:
    """Where instances run."""

    vpc_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[list[str]]
    security_group_ids: pulumi.Input[list[str]]


def deploy(
    environment: Environment,
    section: Aws,
    hooks: pulumi.ResourceHookBinding,
    on_stop: pulumi.ResourceHookBinding,
    pay: Spending,
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """Creates the section's components and exports what other stacks need of them; the targets of jobs, by name."""
    on_aws = pulumi.ResourceOptions(providers=[aws_provider(environment, section)])
    place = _network(section, on_aws)
    log = JobLog("jobs", section.logs, on_aws)
    repositories = {name: ImageRepository(name, spec, on_aws) for name, spec in section.repositories.items()}
    code = CodeBucket("code", section.code, on_aws) if section.code else None
    roles = BatchRoles(
        "batch",
        BatchRolesArgs(
            spec=section.roles,
            log_group_arn=log.arn,
            repository_arns=[each.arn for each in repositories.values()],
            secret_arns=[arn for spec in section.definitions.values() for arn in spec.secrets.values()],
            metric_namespaces=list(monitoring.gpu_namespaces(section).values()),
            mounted_buckets=_mounted_buckets(section),
            code_arn=code.folder_arn if code else None,
            log_groups=_log_groups(section),
            efs_volumes=[
                volume
                for spec in section.definitions.values()
                for volume in spec.volumes
                if isinstance(volume, EfsVolume)
            ],
        ),
        on_aws,
    )
    claims = ClaimTable("claims", section.claims, on_aws) if section.claims else None
    paid = pay.on_aws(section.region, on_aws)
    stop = budgets.stop(section, claims, on_stop)
    images = pinned_images(section)
    environments = {
        name: ComputeEnvironment(
            name,
            ComputeEnvironmentArgs(
                spec=spec,
                image_id=images.get(name),
                region=section.region,
                hooks=joined_hooks(stop.hooks, hooks),
                stop_tags=stop.tags,
                vpc_id=place.vpc_id,
                subnet_ids=_subnets(section, spec.zone, place),
                security_group_ids=place.security_group_ids,
                instance_profile_arn=roles.instance_profile_arn,
                boot_scripts=monitoring.boot_scripts(section, name),
                tags={**tags(environment), "Name": name},
            ),
            on_aws,
        )
        for name, spec in section.environments.items()
    }
    definitions = {
        name: JobDefinition(
            name,
            JobDefinitionArgs(
                spec=spec,
                region=section.region,
                log_group=log.name,
                job_role_arn=roles.job_role_arn,
                execution_role_arn=roles.execution_role_arn,
            ),
            on_aws,
        )
        for name, spec in section.definitions.items()
    }
    queues = {
        name: JobQueue(
            name,
            JobQueueArgs(
                spec=spec,
                environment_arns={key: environments[key].arn for key in spec.environments},
                stop_tags=stop.tags,
                hooks=stop.hooks,
            ),
            on_aws,
        )
        for name, spec in section.queues.items()
    }
    submit = SubmitPolicy(
        "submit",
        SubmitPolicyArgs(
            spec=SubmitPolicySpec(definition_prefix=outputs.definition_prefix(), targets_path=targets_path()),
            region=section.region,
            queue_arns=[queues[name].arn for name in sorted(queues)],
            definition_arns=[definitions[name].arn for name in sorted(definitions)],
            role_arns=[roles.job_role_arn, roles.execution_role_arn],
            log_group_arn=log.arn,
            log_groups=_log_groups(section),
            claim_table_arn=claims.arn if claims else None,
            ledger_arn=pay.table_arn,
            code_bucket_arn=code.arn if code else None,
            code_arn=code.folder_arn if code else None,
        ),
        on_aws,
    )
    monitoring.deploy(section, environments, queues, on_aws)
    budgets.deploy(section, environments, queues, claims, on_aws)
    outputs.export_access(submit.policy_arns)
    outputs.export_network(place.vpc_id, place.subnet_ids, place.security_group_ids)
    return outputs.export_aws(
        section,
        outputs.AwsParts(
            environments,
            queues,
            definitions,
            roles,
            log,
            claims,
            repositories,
            paid,
            code,
            environment.longest_allowances(),
        ),
        on_aws,
    )


def _log_groups(section: Aws) -> list[str]:
    """Those of definitions that do not log to the stack's own group."""
    return sorted({spec.log_group for spec in section.definitions.values() if spec.log_group})


def _mounted_buckets(section: Aws) -> dict[str, Access]:
    """Of all environments, each with the most that one of them may do with it."""
    found: dict[str, Access] = {}
    for spec in section.environments.values():
        for name, access in spec.buckets.items():
            found[name] = "read-write" if "read-write" in (access, found.get(name)) else access
    return found


def _subnets(section: Aws, zone: str | None, place: _Place) -> pulumi.Input[list[str]]:
    if zone is None or not isinstance(section.network, CreatedNetwork):
        return place.subnet_ids
    at = section.network.zones.index(zone)
    return pulumi.Output.from_input(place.subnet_ids).apply(lambda ids: [ids[at]])


def _network(section: Aws, on_aws: pulumi.ResourceOptions) -> _Place:
    match section.network:
        case CreatedNetwork() as spec:
            efa = any(each.efa for each in section.environments.values())
            args = NetworkArgs(
                spec=spec,
                region=section.region,
                open_default=efa,
                permissions_boundary=section.roles.permissions_boundary,
            )
            made = Network("network", args, on_aws)
            return _Place(made.vpc_id, made.subnet_ids, made.security_group_id.apply(lambda group: [group]))
        case ExistingNetwork() as given:
            return _Place(given.vpc_id, given.subnet_ids, given.security_group_ids)
        case StackNetwork() as other:
            theirs = read(AwsNetwork, pulumi.StackReference(other.stack), "network")
            return _Place(
                theirs.apply(lambda network: network.vpc_id),
                theirs.apply(lambda network: network.subnet_ids),
                theirs.apply(lambda network: network.security_group_ids),
            )
