"""SSM parameters from which `jobs` reads a stack's targets without asking Pulumi: one per target, and where a target
would be too large, one more per definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pydantic import Field

from accel.contract.target_layout import FOLDER

from ..base import Component, Spec
from ..sdk import aws


class PublishedTargetsSpec(Spec):
    """Path of the parameters."""

    path: str = Field(
        pattern=r"^(/[A-Za-z0-9._-]+)+$", description="Path of the SSM parameters; each target is <path>/<name>"
    )


@dataclass(frozen=True, kw_only=True)
class PublishedTargetsArgs:
    """The spec, and each target as JSON text. `definitions` are JSON texts too; targets then omit them."""

    spec: PublishedTargetsSpec
    targets: Mapping[str, pulumi.Input[str]]
    definitions: Mapping[str, pulumi.Input[str]] = field(default_factory=dict[str, pulumi.Input[str]])


class PublishedTargets(Component):
    """SSM parameters with the targets of a stack. Only submitters need to read them."""

    TYPE = "accel:aws:PublishedTargets"

    path: pulumi.Output[str]

    def __init__(self, name: str, args: PublishedTargetsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        definitions = [
            self._parameter(f"{name}-{FOLDER}-{key}", f"{args.spec.path}/{FOLDER}/{key}", document)
            for key, document in args.definitions.items()
        ]
        for target, document in args.targets.items():
            # Written after its definitions: otherwise a reader could find a target without them.
            self._parameter(f"{name}-{target}", f"{args.spec.path}/{target}", document, depends_on=definitions)
        self.path = pulumi.Output.from_input(args.spec.path)
        self.finish()

    def _parameter(self, name: str, path: str, document: pulumi.Input[str], **options: Any) -> aws.ssm.Parameter:
        return aws.ssm.Parameter(
            name,
            # The only fixed physical name: readers must know it before anything is deployed.
            name=path,
            type="String",
            # Only a document over 4 KiB moves to the paid tier, by itself.
            tier="Intelligent-Tiering",
            value=document,
            opts=self.child(**options),
        )
