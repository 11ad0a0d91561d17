"""A TensorBoard of Vertex AI."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pydantic import Field

from ..base import Component, Spec
from ..sdk import gcp
from .services import enable_services


class TensorboardSpec(Spec):
    """Its name in the console, if the key alone does not say enough."""

    display_name: str | None = Field(default=None, min_length=1, max_length=128)
    description: str | None = None
    protect: bool = Field(
        default=False, description="Protect the TensorBoard from deletion, which also deletes what jobs wrote to it"
    )


@dataclass(frozen=True, kw_only=True)
class TensorboardArgs:
    """The spec, the project, and the region of the jobs that write to it."""

    spec: TensorboardSpec
    project: str
    region: str


class Tensorboard(Component):
    """Storage for the metrics of jobs, billed by volume."""

    TYPE = "accel:gcp:Tensorboard"

    name: pulumi.Output[str]

    def __init__(self, name: str, args: TensorboardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        services = enable_services(self, name, args.project, ["aiplatform"])
        made = gcp.vertex.AiTensorboard(
            name,
            project=args.project,
            region=args.region,
            display_name=args.spec.display_name or name,
            description=args.spec.description,
            opts=self.child(protect=args.spec.protect, depends_on=services),
        )
        # projects/<p>/locations/<r>/tensorboards/<t>
        self.name = made.name
        self.finish()
