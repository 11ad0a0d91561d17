"""A ConfigMap from which `jobs` reads a cluster's targets without asking Pulumi, one key per target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from accel.diagnostics.findings import Finding
from accel.rules.gke import names

from ..base import Component, Spec
from ..sdk import core, meta
from .findings import enforce

NAME = "accel-targets"
MOST_BYTES = 1024 * 1024
"""Maximum of a ConfigMap's data: https://kubernetes.io/docs/concepts/configuration/configmap/#motivation"""


class PublishedTargetsSpec(Spec):
    """The namespace of the ConfigMap: everyone who may read ConfigMaps there finds the targets."""

    namespace: str

    def check(self) -> list[Finding]:
        return names.label(self.namespace, "namespace")


@dataclass(frozen=True, kw_only=True)
class PublishedTargetsArgs:
    """The spec, and each target as JSON text by its name."""

    spec: PublishedTargetsSpec
    targets: Mapping[str, pulumi.Input[str]]


class PublishedTargets(Component):
    """The ConfigMap accel-targets. Its name is fixed: readers must know it before anything is deployed."""

    TYPE = "accel:kubernetes:PublishedTargets"

    config_map: pulumi.Output[str]

    def __init__(self, name: str, args: PublishedTargetsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        for target in args.targets:
            enforce(names.config_key(target, f"targets.{target}"))
        super().__init__(name, args.spec, opts)
        core.ConfigMap(
            name,
            metadata=meta.ObjectMetaArgs(name=NAME, namespace=args.spec.namespace),
            data=pulumi.Output.all(**args.targets).apply(check_size),
            opts=self.child(),
        )
        self.config_map = pulumi.Output.from_input(f"{args.spec.namespace}/{NAME}")
        self.finish()


def check_size(targets: Mapping[str, Any]) -> dict[str, str]:
    """Raise ValueError if the targets are too large for one ConfigMap."""
    size = sum(len(key.encode()) + len(text.encode()) for key, text in targets.items())
    if size > MOST_BYTES:
        raise ValueError(
            f"targets: have {size} bytes, and a ConfigMap takes {MOST_BYTES}; publish fewer pools or targets"
        )
    return dict(targets)
