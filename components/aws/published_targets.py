"""Where `jobs` reads a stack's targets without asking Pulumi: one SSM parameter a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pydantic import Field

from ..base import Component, Spec
from ..sdk import aws


class PublishedTargetsSpec(Spec):
    """Where the parameters lie."""

    path: str = Field(pattern=r"^(/[A-Za-z0-9._-]+)+$", description="each target is <path>/<name>")


@dataclass(frozen=True, kw_only=True)
class PublishedTargetsArgs:
    """The spec, and each target as JSON text."""

    spec: PublishedTargetsSpec
    targets: Mapping[str, pulumi.Input[str]]


class PublishedTargets(Component):
    """SSM parameters that hold the targets of a stack. Only those who run jobs need to read them."""

    TYPE = "accel:aws:PublishedTargets"

    path: pulumi.Output[str]

    def __init__(self, name: str, args: PublishedTargetsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        for target, document in args.targets.items():
            aws.ssm.Parameter(
                f"{name}-{target}",
                # The one physical name that is fixed: readers must know it before anything is deployed.
                name=f"{args.spec.path}/{target}",
                type="String",
                # A target over 4 KiB moves to the paid tier by itself, and only then.
                tier="Intelligent-Tiering",
                value=document,
                opts=self.child(),
            )
        self.path = pulumi.Output.from_input(args.spec.path)
        self.finish()
