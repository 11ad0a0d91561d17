"""The file that `pulumi import --file` takes.

A URN holds the types of a resource's parents, so each resource is imported under the component that the program will
register, which the same file makes, empty; the provider likewise, from `providerInputs`.
Sources: https://www.pulumi.com/docs/iac/guides/migration/import/#bulk-import-operations,
https://github.com/pulumi/pulumi/pull/21671
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from components.aws.compute_environment import ComputeEnvironment
from components.aws.job_definition import JobDefinition
from components.aws.job_queue import JobQueue

from .documents import AwsResource

COMPONENTS: Mapping[str, tuple[str, str]] = {
    "environments": (ComputeEnvironment.TYPE, "aws:batch/computeEnvironment:ComputeEnvironment"),
    "queues": (JobQueue.TYPE, "aws:batch/jobQueue:JobQueue"),
    "definitions": (JobDefinition.TYPE, "aws:batch/jobDefinition:JobDefinition"),
}
"""By section: the component's type, and that of the resource in it."""

PROVIDER = "aws"


def document(existing: Mapping[tuple[str, str], AwsResource], region: str, project: str, stack: str) -> dict[str, Any]:
    """What exists, as the program of this project registers it. An environment's id is its name, others' their ARN."""
    sdk = version("pulumi_aws")
    resources: list[dict[str, Any]] = []
    for (section, key), found in existing.items():
        component, resource = COMPONENTS[section]
        # `name` is of this file alone and has to differ, since components are named as what is in them
        # (https://github.com/pulumi/pulumi/issues/17375); `logicalName` is the one in the URN.
        parent = f"{section}.{key}"
        resources += [
            {"type": component, "name": parent, "logicalName": key, "component": True},
            {
                "type": resource,
                "name": f"{parent}.resource",
                "logicalName": key,
                "id": found.name if section == "environments" else found.arn,
                "parent": parent,
                "provider": PROVIDER,
                "version": sdk,
            },
        ]
    return {
        "nameTable": {PROVIDER: f"urn:pulumi:{stack}::{project}::pulumi:providers:aws::aws-{region}"},
        "providerInputs": {PROVIDER: {"region": region, "version": sdk}},
        "resources": resources,
    }
