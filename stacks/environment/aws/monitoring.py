"""The `monitoring` section of an environment: what instances publish, and the component that watches the stack."""

from collections.abc import Mapping

import pulumi

from accel.contract.monitoring import AwsMonitoring
from components.aws.compute_environment import ComputeEnvironment
from components.aws.gpu_metrics import cloudwatch_agent_script, gpu_namespace
from components.aws.job_queue import JobQueue
from components.aws.monitoring import Monitoring, MonitoringArgs

from ..config import Aws
from ..export_model import promised
from ..names import stack_prefix


def _namespace() -> str:
    return f"{pulumi.get_project()}/{pulumi.get_stack()}"


def gpu_namespaces(section: Aws) -> dict[str, str]:
    """The metric namespace of each compute environment's agents; empty where none run."""
    if section.monitoring is None or not section.monitoring.gpu_metrics:
        return {}
    return {name: gpu_namespace(_namespace(), name) for name in section.environments}


def boot_scripts(section: Aws, environment: str) -> list[str]:
    """What instances of a compute environment run at first boot because of monitoring."""
    namespace = gpu_namespaces(section).get(environment)
    if section.monitoring is None or namespace is None:
        return []
    return [cloudwatch_agent_script(namespace, section.monitoring.gpu_interval_s)]


def deploy(
    section: Aws,
    environments: Mapping[str, ComputeEnvironment],
    queues: Mapping[str, JobQueue],
    on_aws: pulumi.ResourceOptions,
) -> None:
    """Creates the component and exports `monitoring`; nothing without the section."""
    if section.monitoring is None:
        return
    made = Monitoring(
        "monitoring",
        MonitoringArgs(
            spec=section.monitoring,
            region=section.region,
            prefix=stack_prefix(),
            namespace=_namespace(),
            queue_arns={name: queue.arn for name, queue in queues.items()},
            cluster_arns={name: environment.ecs_cluster_arn for name, environment in environments.items()},
            gpu_namespaces=gpu_namespaces(section),
            permissions_boundary=section.roles.permissions_boundary,
        ),
        on_aws,
    )
    known = pulumi.Output.all(
        topic_arn=made.topic_arn, event_log=made.event_log, dashboard=made.dashboard, namespace=_namespace()
    )
    pulumi.export(
        "monitoring", promised(known, lambda names: AwsMonitoring(**names).model_dump(mode="json", by_alias=True))
    )
