"""Deploys one environment: a section a cloud, and the outputs that others build on."""

from typing import Any

import pulumi

from components.aws.environment_hooks import environment_hooks

from .config import ConfigFaults, Environment, load_environment


def load() -> Environment:
    """The environment of the stack being deployed. Raises pulumi.RunError with every fault of its config."""
    document: Any = pulumi.Config("accel").require_object("environment")
    try:
        return load_environment(document)
    except ConfigFaults as faults:
        raise pulumi.RunError(str(faults)) from None


def deploy(environment: Environment) -> None:
    """Creates what the environment has sections for, and exports targets, network and budgets."""
    section = environment.aws
    # Also without a section: the state of the run before may name them.
    hooks = environment_hooks({name: spec.drain for name, spec in section.environments.items()} if section else {})
    if section is not None:
        # Imported here: a stack without AWS never imports pulumi_aws.
        from . import aws

        aws.deploy(environment, section, hooks)
