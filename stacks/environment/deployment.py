"""The deployment of one environment: one section per cloud, and the outputs that others build on."""

from typing import Any

import pulumi

from accel.contract.target_layout import add_source
from components.aws.environment_hooks import environment_hooks
from components.aws.stop_hooks import stop_hooks
from components.gcp.pool_hooks import pool_hooks
from components.gcp.queue_hooks import queue_hooks
from components.gcp.stop_hooks import StopHooks

from .allowances import Spending
from .aws import section as aws_section
from .config import ConfigFaults, Environment, load_environment
from .gcp import section as gcp_section
from .gcp.queued_tpu_hooks import queued_tpu_hooks
from .names import targets_path
from .targets_file import write_targets


def load() -> Environment:
    """Raise pulumi.RunError with every fault of its config."""
    document: Any = pulumi.Config("accel").require_object("environment")
    try:
        return load_environment(document)
    except ConfigFaults as faults:
        raise pulumi.RunError(str(faults)) from None


def deploy(environment: Environment) -> None:
    """Create the environment, export its targets, and write them to the file of ACCEL_EXPORT."""
    if targets := create_sections(environment):
        pulumi.export("targets", write_targets(targets))


def create_sections(environment: Environment) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """Create the components of the environment's sections, export network and budgets, and return the targets."""
    section, google = environment.aws, environment.gcp
    # Registered without a section too: the state of the previous run may name them.
    hooks = environment_hooks({name: spec.drain for name, spec in section.environments.items()} if section else {})
    on_pools, on_queues, on_stop, on_google_stop = (
        pool_hooks(),
        (queue_hooks(), queued_tpu_hooks()),
        stop_hooks(),
        StopHooks(),
    )
    pay = Spending(environment)
    targets: dict[str, pulumi.Output[dict[str, Any]]] = {}
    if section is not None:
        targets |= aws_section.deploy(environment, section, hooks, on_stop, pay)
    if google is not None:
        targets |= gcp_section.deploy(environment, google, on_pools, on_queues, on_google_stop, pay)
    path = targets_path()
    return {name: each.apply(lambda one: add_source(one, path) if one else one) for name, each in targets.items()}
