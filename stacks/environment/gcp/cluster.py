"""The cluster of the Google Cloud section: its network, the accounts of nodes and pods, the cluster and its pools."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pulumi
from pydantic import RootModel

from accel.catalog.nearest import nearest
from accel.contract import gke as contract
from accel.contract.stack import read
from components.gcp.cluster import GkeCluster, GkeClusterArgs
from components.gcp.cpu_pool import CpuPool, CpuPoolArgs, CpuPoolSpec
from components.gcp.gpu_pool import GpuPool, GpuPoolArgs, GpuPoolSpec
from components.gcp.pool_base import PoolArgs
from components.gcp.service_accounts import (
    NodeServiceAccount,
    NodeServiceAccountArgs,
    WorkloadServiceAccount,
    WorkloadServiceAccountArgs,
)
from components.gcp.tpu_pool import TpuPool, TpuPoolArgs, TpuPoolSpec

from ..config import Environment
from ..export_model import promise_output
from . import outputs
from .config import AnyPool, Cluster, CreatedCluster, ExistingCluster, ExistingNodeAccount, Gcp, StackCluster
from .network import ClusterNetwork, network_of
from .providers import labels


@dataclass(frozen=True)
class MadePool:
    """A pool that this stack created. `facts` contains the author's key as a placeholder for the physical name."""

    facts: contract.GkePool
    name: pulumi.Output[str]


@dataclass(frozen=True)
class ClusterContext:
    """The ground of workloads. `cluster` has every pool, also those of the stack that it came from; `pools` are those
    created here; `emails` are those of the Google service accounts that pods run as, by their keys."""

    cluster: pulumi.Output[contract.GkeCluster] | None
    pools: Mapping[str, MadePool]
    emails: Mapping[str, pulumi.Output[str]]
    place: ClusterNetwork | None = None

    @property
    def accelerated_pools(self) -> dict[str, pulumi.Output[str]]:
        return {key: one.name for key, one in self.pools.items() if one.facts.gpus or one.facts.tpu_chips}


def deploy(
    environment: Environment, section: Gcp, hooks: pulumi.ResourceHookBinding, on_gcp: pulumi.ResourceOptions
) -> ClusterContext:
    place = network_of(section, on_gcp)
    if place is not None:
        outputs.export_network(place.whole)
    if section.cluster is None:
        return ClusterContext(None, {}, _workload_accounts(section, _pool_of(section), on_gcp), place)
    nodes = _node_account(section, on_gcp)
    bare = _cluster(section, section.cluster, place, nodes, on_gcp)
    # A project has no such pool before its first cluster.
    emails = _workload_accounts(section, bare.workload_pool, on_gcp)
    if nodes is None:
        return ClusterContext(bare.whole, {}, emails, place)
    common = PoolArgs(
        cluster=bare.name,
        location=bare.location,
        service_account=nodes,
        resource_labels=labels(environment),
        hooks=hooks,
    )
    pools: dict[str, MadePool] = {}
    for key, spec in section.pools.items():
        name = _pool(key, spec, replace(common, zones=section.node_zones(spec)), on_gcp)
        pools[key] = MadePool(section.pool_facts(key, key), name)
    names = pulumi.Output.all(**{key: pool.name for key, pool in pools.items()})
    whole = promise_output(pulumi.Output.all(bare.whole, names), lambda known: _with_pools(section, known[0], known[1]))
    return ClusterContext(whole, pools, emails, place)


def _pool(key: str, spec: AnyPool, common: PoolArgs, on_gcp: pulumi.ResourceOptions) -> pulumi.Output[str]:
    match spec:
        case CpuPoolSpec():
            return CpuPool(key, CpuPoolArgs(spec=spec, **vars(common)), on_gcp).name
        case GpuPoolSpec():
            return GpuPool(key, GpuPoolArgs(spec=spec, **vars(common)), on_gcp).name
        case TpuPoolSpec():
            return TpuPool(key, TpuPoolArgs(spec=spec, **vars(common)), on_gcp).name


def _with_pools(section: Gcp, cluster: contract.GkeCluster, names: Mapping[str, str]) -> contract.GkeCluster:
    made = {key: section.pool_facts(key, name) for key, name in names.items()}
    return cluster.model_copy(update={"pools": {**cluster.pools, **made}})


def _node_account(section: Gcp, on_gcp: pulumi.ResourceOptions) -> pulumi.Output[str] | None:
    if not section.pools and not isinstance(section.cluster, CreatedCluster):
        return None
    spec = section.accounts.nodes
    if isinstance(spec, ExistingNodeAccount):
        return pulumi.Output.from_input(spec.email)
    return NodeServiceAccount("nodes", NodeServiceAccountArgs(spec=spec, project=section.project), on_gcp).email


@dataclass(frozen=True)
class _Bare:
    """A cluster without the pools created here; separate for the same reason as ClusterNetwork's values."""

    whole: pulumi.Output[contract.GkeCluster]
    name: pulumi.Input[str]
    location: pulumi.Input[str]
    workload_pool: pulumi.Input[str]


def _cluster(
    section: Gcp,
    cluster: Cluster,
    place: ClusterNetwork | None,
    nodes: pulumi.Output[str] | None,
    on_gcp: pulumi.ResourceOptions,
) -> _Bare:
    match cluster:
        case CreatedCluster() as spec:
            assert place is not None and nodes is not None  # the section was checked for them
            args = GkeClusterArgs(
                spec=spec,
                project=section.project,
                network=place.network,
                subnetwork=place.subnetwork,
                pods_range=place.pods_range,
                services_range=place.services_range,
                max_pods_per_node=place.max_pods_per_node,
                node_service_account=nodes,
            )
            made = GkeCluster(spec.key, args, on_gcp)
            known = pulumi.Output.all(
                location=made.location,
                name=made.name,
                endpoint=made.endpoint,
                ca_certificate=made.ca_certificate,
                workload_pool=made.workload_pool,
            )
            whole = promise_output(known, lambda one: contract.GkeCluster(project=section.project, pools={}, **one))
            return _Bare(whole, made.name, spec.location, made.workload_pool)
        case ExistingCluster() as given:
            whole = pulumi.Output.from_input(given.name).apply(lambda name: _existing(section, given, name))
            return _Bare(whole, given.name, given.location, _pool_of(section))
        case StackCluster() as other:
            clusters = read(Clusters, pulumi.StackReference(other.stack), "clusters")
            whole = clusters.apply(lambda all_of_it: of_stack(all_of_it.root, other))
            name, location = whole.apply(lambda one: one.name), whole.apply(lambda one: one.location)
            return _Bare(whole, name, location, _pool_of(section))


def _existing(section: Gcp, given: ExistingCluster, name: str) -> contract.GkeCluster:
    return contract.GkeCluster(
        project=section.project,
        location=given.location,
        name=name,
        endpoint=given.endpoint,
        ca_certificate=given.ca_certificate,
        workload_pool=_pool_of(section),
        pools={},
    )


def _pool_of(section: Gcp) -> str:
    return f"{section.project}.svc.id.goog"


def _workload_accounts(
    section: Gcp, pool: pulumi.Input[str], on_gcp: pulumi.ResourceOptions
) -> dict[str, pulumi.Output[str]]:
    return {
        key: WorkloadServiceAccount(
            key, WorkloadServiceAccountArgs(spec=spec, project=section.project, workload_pool=pool), on_gcp
        ).email
        for key, spec in section.accounts.workloads.items()
    }


class Clusters(RootModel[dict[str, contract.GkeCluster]]):
    """The `clusters` output of a stack."""


def pools_of_stack(other: StackCluster) -> dict[str, contract.GkePool]:
    """Return values, not outputs: they decide which objects the program creates in the cluster while it runs."""
    # The engine's own function, by its own name. Source: ReadStackOutputs in pkg/resource/deploy/builtins.go of Pulumi.
    found: Any = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": other.stack}).value
    clusters = Clusters.model_validate(found["outputs"].get("clusters", {}), extra="ignore")
    return of_stack(clusters.root, other).pools


def of_stack(clusters: Mapping[str, contract.GkeCluster], other: StackCluster) -> contract.GkeCluster:
    """Raise pulumi.RunError where the other stack has no cluster of that key."""
    if other.key not in clusters:
        near = nearest(other.key, list(clusters), 1) or sorted(clusters)
        raise pulumi.RunError(
            f"gcp.cluster.key: stack {other.stack} has no cluster {other.key!r}; nearest: {', '.join(near)}"
        )
    return clusters[other.key]
