"""Resources that existed before the stack: they keep name, tags, and properties that the stack cannot express. The name
is written down, since the next update replaces an imported resource whose name is left to be generated
(https://github.com/pulumi/pulumi-terraform-bridge/issues/487)."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from ..base import Spec


class _Adopted(Spec):
    """The physical name of a resource that existed before the stack, and its own tags."""

    name: str = Field(
        min_length=1,
        max_length=128,
        description="Physical name of the existing resource; without `adopted`, a new resource under a generated "
        "name replaces it",
    )
    tags: dict[str, str] = Field(
        default_factory=dict, description="Tags of the existing resource, in addition to those of the stack"
    )


EnvironmentPart = Literal[
    "allocation_strategy", "image", "image_id", "instance_tags", "key_pair", "launch_template", "network",
    "placement_group",
]  # fmt: skip
QueuePart = Literal["scheduling_policy"]
DefinitionPart = Literal["container", "parameters", "scheduling_priority"]


class AdoptedEnvironment(_Adopted):
    """A compute environment that existed before the stack."""

    keeps: list[EnvironmentPart] = Field(
        default_factory=list[EnvironmentPart],
        description="Parts that stay as they were made, whatever else is configured here",
    )


class AdoptedQueue(_Adopted):
    """A job queue that existed before the stack."""

    keeps: list[QueuePart] = Field(default_factory=list[QueuePart], description="Parts that stay as they were made")


class AdoptedDefinition(_Adopted):
    """A job definition that existed before the stack. It keeps its name; a change registers a revision of it."""

    keeps: list[DefinitionPart] = Field(
        default_factory=list[DefinitionPart],
        description="Parts that stay as they were made, whatever else is configured here",
    )


PROPERTIES: Mapping[str, tuple[str, ...]] = {
    "allocation_strategy": ("computeResources.allocationStrategy",),
    "container": ("containerProperties", "platformCapabilities"),
    "image": ("computeResources.ec2Configurations",),
    "image_id": ("computeResources.imageId",),
    "instance_tags": ("computeResources.tags",),
    "key_pair": ("computeResources.ec2KeyPair",),
    "launch_template": ("computeResources.launchTemplate",),
    "network": ("computeResources.subnets", "computeResources.securityGroupIds"),
    "parameters": ("parameters",),
    "placement_group": ("computeResources.placementGroup",),
    "scheduling_policy": ("schedulingPolicyArn",),
    "scheduling_priority": ("schedulingPriority",),
}
"""Resource properties behind each word of `keeps`."""

Adopted = AdoptedEnvironment | AdoptedQueue | AdoptedDefinition


def ignored_properties(adopted: Adopted | None) -> list[str]:
    keeps: Sequence[str] = adopted.keeps if adopted else ()
    return [path for word in keeps for path in PROPERTIES[word]]
