"""The Google Cloud section of an environment as components."""

from collections.abc import Sequence
from typing import Any

import pulumi

from components.aws.stop_hooks import joined_hooks
from components.gcp.stop_hooks import StopHooks

from ..allowances import Spending
from ..config import Environment
from ..gke import workloads
from . import budgets, cluster, jobs, outputs, services, vms
from .config import Gcp
from .providers import gcp_provider, labels


def deploy(
    environment: Environment,
    section: Gcp,
    hooks: pulumi.ResourceHookBinding,
    queue_hooks: Sequence[pulumi.ResourceHookBinding],
    stop_hooks: StopHooks,
    pay: Spending,
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """Creates the section's components and exports what other stacks need of them; the targets of jobs, by name."""
    apis = services.deploy(environment, section)
    on_gcp = pulumi.ResourceOptions(providers=[gcp_provider(environment, section, after=apis)])
    stop = budgets.stopping(section, stop_hooks, on_gcp)
    if stop:
        stop_hooks.where = stop.stop
        hooks, *queue_hooks = (joined_hooks(stop_hooks.binding, each) for each in (hooks, *queue_hooks))
    context = cluster.deploy(environment, section, hooks, on_gcp)
    outputs.export_accounts(context.emails)
    wired = {**budgets.stop_of(stop), **pay.on_gcp(section, on_gcp)}
    targets = vms.deploy(section, context.place, labels(environment), queue_hooks, on_gcp, wired, stop)
    targets |= jobs.deploy(section, context.place, labels(environment), on_gcp, wired)
    if context.cluster is not None and section.cluster is not None:
        outputs.export_clusters({section.cluster.key: context.cluster})
        targets |= workloads.deploy(section, section.cluster, context, context.cluster, stop, wired, on_gcp)
    budgets.deploy(environment, section, apis, stop, context.cluster, context.accelerated_pools)
    return targets
