"""Clusters that another stack made, by its outputs."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pydantic import RootModel

from accel.catalog.nearest import nearest
from accel.contract import gke as contract

from .config import StackCluster


class Clusters(RootModel[dict[str, contract.GkeCluster]]):
    """The `clusters` output of a stack."""


def pools_of_stack(other: StackCluster) -> dict[str, contract.GkePool]:
    """The pools of another stack's cluster, as values: which objects are made in the cluster depends on them, and an
    output is not known while the program runs."""
    # The engine's own function, by its own name. Source: ReadStackOutputs in pkg/resource/deploy/builtins.go of Pulumi.
    found: Any = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": other.stack}).value
    clusters = Clusters.model_validate(found["outputs"].get("clusters", {}), extra="ignore")
    return of_stack(clusters.root, other).pools


def of_stack(clusters: Mapping[str, contract.GkeCluster], other: StackCluster) -> contract.GkeCluster:
    """The cluster that is asked for. Raises pulumi.RunError where the other stack has none of that key."""
    if other.key not in clusters:
        near = nearest(other.key, list(clusters), 1) or sorted(clusters)
        raise pulumi.RunError(
            f"gcp.cluster.key: stack {other.stack} has no cluster {other.key!r}; nearest: {', '.join(near)}"
        )
    return clusters[other.key]
