"""The AWS section of an environment as components."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from accel.budget.spending import Limit
from accel.contract.budgets import Budget as Promise
from accel.contract.monitoring import AwsMonitoring
from accel.contract.network import AwsNetwork
from accel.contract.stack import read
from components.aws.batch_roles import BatchRoles, BatchRolesArgs
from components.aws.bucket_mounts import Access
from components.aws.budget import Budget
from components.aws.budget_stop import BudgetStop, BudgetStopArgs
from components.aws.claim_table import ClaimTable
from components.aws.code_bucket import CodeBucket
from components.aws.compute_environment import ComputeEnvironment, ComputeEnvironmentArgs
from components.aws.gpu_metrics import cloudwatch_agent_script, gpu_namespace
from components.aws.image_repository import ImageRepository
from components.aws.job_definition import EfsVolume, JobDefinition, JobDefinitionArgs
from components.aws.job_log import JobLog
from components.aws.job_queue import JobQueue, JobQueueArgs
from components.aws.monitoring import Monitoring, MonitoringArgs
from components.aws.network import Network, NetworkArgs
from components.aws.stop_hooks import join_hooks, tag_of
from components.aws.submit_policy import SubmitPolicy, SubmitPolicyArgs, SubmitPolicySpec

from .. import outputs
from ..allowances import Spending
from ..config import Environment
from ..export_model import promise_output
from ..images_lock import pinned_images
from ..names import stack_prefix, targets_path
from ..providers import aws_provider, tags
from .config import Aws, CreatedNetwork, ExistingNetwork, StackNetwork


@dataclass(frozen=True)
class _Place:
    vpc_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[list[str]]
    security_group_ids: pulumi.Input[list[str]]


@dataclass(frozen=True)
class _Stopping:
    """Tags and hooks for queues and environments that a budget may stop."""

    tags: Mapping[str, pulumi.Input[str]]
    """Empty where no budget stops anything."""
    hooks: pulumi.ResourceHookBinding
    """Set without a budget too: an update that removes the budget of a stopped stack is held up by them."""


def deploy(
    environment: Environment,
    section: Aws,
    hooks: pulumi.ResourceHookBinding,
    on_stop: pulumi.ResourceHookBinding,
    pay: Spending,
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """Export what other stacks need. Return the targets of jobs by name."""
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
            metric_namespaces=list(_gpu_namespaces(section).values()),
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
    stop = _stopping(section, claims, on_stop)
    images = pinned_images(section)
    environments = {
        name: ComputeEnvironment(
            name,
            ComputeEnvironmentArgs(
                spec=spec,
                image_id=images.get(name),
                region=section.region,
                hooks=join_hooks(stop.hooks, hooks),
                stop_tags=stop.tags,
                vpc_id=place.vpc_id,
                subnet_ids=_subnets(section, spec.zone, place),
                security_group_ids=place.security_group_ids,
                instance_profile_arn=roles.instance_profile_arn,
                boot_scripts=_boot_scripts(section, name),
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
    _deploy_monitoring(section, environments, queues, on_aws)
    _deploy_budgets(section, environments, queues, claims, on_aws)
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
    return sorted({spec.log_group for spec in section.definitions.values() if spec.log_group})


def _mounted_buckets(section: Aws) -> dict[str, Access]:
    """Return the buckets of all environments, each with the widest access of any of them."""
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


def _metric_namespace() -> str:
    return f"{pulumi.get_project()}/{pulumi.get_stack()}"


def _gpu_namespaces(section: Aws) -> dict[str, str]:
    if section.monitoring is None or not section.monitoring.gpu_metrics:
        return {}
    return {name: gpu_namespace(_metric_namespace(), name) for name in section.environments}


def _boot_scripts(section: Aws, environment: str) -> list[str]:
    namespace = _gpu_namespaces(section).get(environment)
    if section.monitoring is None or namespace is None:
        return []
    return [cloudwatch_agent_script(namespace, section.monitoring.gpu_interval_s)]


def _deploy_monitoring(
    section: Aws,
    environments: Mapping[str, ComputeEnvironment],
    queues: Mapping[str, JobQueue],
    on_aws: pulumi.ResourceOptions,
) -> None:
    if section.monitoring is None:
        return
    made = Monitoring(
        "monitoring",
        MonitoringArgs(
            spec=section.monitoring,
            region=section.region,
            prefix=stack_prefix(),
            namespace=_metric_namespace(),
            queue_arns={name: queue.arn for name, queue in queues.items()},
            cluster_arns={name: environment.ecs_cluster_arn for name, environment in environments.items()},
            gpu_namespaces=_gpu_namespaces(section),
            permissions_boundary=section.roles.permissions_boundary,
        ),
        on_aws,
    )
    known = pulumi.Output.all(
        topic_arn=made.topic_arn, event_log=made.event_log, dashboard=made.dashboard, namespace=_metric_namespace()
    )
    pulumi.export(
        "monitoring", promise_output(known, lambda names: AwsMonitoring(**names).model_dump(mode="json", by_alias=True))
    )


def _stopping(section: Aws, claims: ClaimTable | None, hooks: pulumi.ResourceHookBinding) -> _Stopping:
    return _Stopping(tag_of(section.region, claims.name) if claims and _limits(section) else {}, hooks)


def _limits(section: Aws) -> dict[str, Limit]:
    return {
        key: Limit(key, spec.stop.at, spec.stop.basis, spec.stop.running_after_s)
        for key, spec in section.budgets.items()
        if spec.stop
    }


def _deploy_budgets(
    section: Aws,
    environments: Mapping[str, ComputeEnvironment],
    queues: Mapping[str, JobQueue],
    claims: ClaimTable | None,
    on_aws: pulumi.ResourceOptions,
) -> None:
    if not section.budgets:
        return
    made = {key: Budget(key, spec, on_aws) for key, spec in section.budgets.items()}
    stops = _limits(section)
    acting = _deploy_stop(section, made, stops, environments, queues, claims, on_aws) if stops and claims else None
    known = pulumi.Output.all(
        names={key: each.name for key, each in made.items()}, function=acting.function if acting else None
    )
    pulumi.export(
        "budgets",
        promise_output(
            known,
            lambda found: _budget_promises(section, found["names"], found["function"]),
            optional=() if acting else ("function",),
        ),
    )


def _budget_promises(section: Aws, names: Mapping[str, str], function: str | None) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, spec in section.budgets.items():
        at = spec.stop
        promise = Promise(
            kind="aws",
            name=names[key],
            amount=spec.amount,
            currency=spec.currency,
            stops_at=at.at if at else None,
            basis=at.basis if at else "actual",
            region=section.region,
            function=function if at else None,
        )
        made[key] = promise.model_dump(mode="json", by_alias=True)
    return made


def _deploy_stop(
    section: Aws,
    made: Mapping[str, Budget],
    stops: Mapping[str, Limit],
    environments: Mapping[str, ComputeEnvironment],
    queues: Mapping[str, JobQueue],
    claims: ClaimTable,
    on_aws: pulumi.ResourceOptions,
) -> BudgetStop:
    told = [section.budgets[key].recipients for key in stops]
    return BudgetStop(
        "budget-stop",
        BudgetStopArgs(
            spec=section.budget_stop,
            region=section.region,
            limits=stops,
            budget_names={key: made[key].name for key in stops},
            budget_topic_arns={key: topic for key in stops if (topic := made[key].stop_topic_arn)},
            queue_arns={name: queue.arn for name, queue in queues.items()},
            environment_arns={name: environment.arn for name, environment in environments.items()},
            claim_table=claims.name,
            claim_table_arn=claims.arn,
            emails=sorted({email for each in told for email in each.emails}),
            topic_arns=sorted({each.sns_topic_arn for each in told if each.sns_topic_arn}),
            permissions_boundary=section.roles.permissions_boundary,
        ),
        on_aws,
    )
