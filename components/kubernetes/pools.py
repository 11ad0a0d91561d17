"""Node pools as pods address them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from accel.contract.gke import GkePool, Taint

from ..sdk import core

ACCELERATOR = "cloud.google.com/gke-accelerator"
NODE_POOL = "cloud.google.com/gke-nodepool"
"""Node labels that GKE sets: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus"""

EFFECTS = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A pool's facts from the contract, and its physical name, which may be unknown until the pool is created."""

    facts: GkePool
    name: pulumi.Input[str]


def tolerations(taints: Sequence[Taint]) -> list[core.TolerationArgs]:
    return [
        core.TolerationArgs(key=taint.key, operator="Equal", value=taint.value, effect=EFFECTS[taint.effect])
        if taint.value
        else core.TolerationArgs(key=taint.key, operator="Exists", effect=EFFECTS[taint.effect])
        for taint in taints
    ]


def gpu_nodes() -> core.AffinityArgs:
    """Select nodes with a GPU, whoever installs its driver."""
    return node_terms([[expression(ACCELERATOR, "Exists")]])


def expression(
    key: str, operator: str, values: Sequence[pulumi.Input[str]] | None = None
) -> core.NodeSelectorRequirementArgs:
    return core.NodeSelectorRequirementArgs(key=key, operator=operator, values=values)


def node_terms(terms: Sequence[Sequence[core.NodeSelectorRequirementArgs]]) -> core.AffinityArgs:
    """Select nodes that meet every requirement of at least one term."""
    return core.AffinityArgs(
        node_affinity=core.NodeAffinityArgs(
            required_during_scheduling_ignored_during_execution=core.NodeSelectorArgs(
                node_selector_terms=[core.NodeSelectorTermArgs(match_expressions=list(term)) for term in terms]
            )
        )
    )


def host_volume(name: str, path: str, kind: str | None = None) -> core.VolumeArgs:
    """Return a folder or device of the node; `kind` is the type that must exist there, such as CharDevice."""
    return core.VolumeArgs(name=name, host_path=core.HostPathVolumeSourceArgs(path=path, type=kind))


def mount(name: str, path: str, read_only: bool | None = None) -> core.VolumeMountArgs:
    return core.VolumeMountArgs(name=name, mount_path=path, read_only=read_only)
