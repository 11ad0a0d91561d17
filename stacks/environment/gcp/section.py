"""The Google Cloud section of an environment as components."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pulumi

from accel.contract import gke as contract
from accel.contract.stack import read
from components.aws.stop_hooks import joined_hooks
from components.gcp.cluster import GkeCluster, GkeClusterArgs
from components.gcp.code_bucket import CodeBucket, CodeBucketArgs
from components.gcp.cpu_pool import CpuPool, CpuPoolArgs, CpuPoolSpec
from components.gcp.gpu_pool import GpuPool, GpuPoolArgs, GpuPoolSpec
from components.gcp.pool_base import PoolArgs
from components.gcp.service_accounts import (
    NodeServiceAccount,
    NodeServiceAccountArgs,
    WorkloadServiceAccount,
    WorkloadServiceAccountArgs,
)
from components.gcp.stop_hooks import StopHooks
from components.gcp.tpu_pool import TpuPool, TpuPoolArgs, TpuPoolSpec
from components.kubernetes.pools import Pool

from ..allowances import Spending, Wired
from ..config import Environment
from ..export_model import promised
from . import outputs
from . import services as gcp_services
from .budgets import Stopping, stop_of, stopping
from .budgets import deploy as deploy_budgets
from .config import AnyPool, Cluster, CreatedCluster, ExistingCluster, ExistingNodeAccount, Gcp, StackCluster
from .network import Place, network_of
from .providers import gcp_provider, labels
from .stacks import Clusters, of_stack, pools_of_stack


@dataclass(frozen=True)
class MadePool:
    """A pool that this stack made. `facts` has the author's key where the physical name is to stand."""

    facts: contract.GkePool
    name: pulumi.Output[str]


@dataclass(frozen=True)
class Ground:
    """What workloads stand on. `cluster` has every pool, also those of the stack that it came from; `pools` are those
    that were made here; `emails` are of the Google service accounts that pods become, by their keys."""

    cluster: pulumi.Output[contract.GkeCluster] | None
    pools: Mapping[str, MadePool]
    emails: Mapping[str, pulumi.Output[str]]
    place: Place | None = None


def deploy(
    environment: Environment,
    section: Gcp,
    hooks: pulumi.ResourceHookBinding,
    queue_hooks: Sequence[pulumi.ResourceHookBinding],
    stop_hooks: StopHooks,
    pay: Spending,
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """Creates the section's components and exports what other stacks need of them; the targets of jobs, by name."""
    services = gcp_services.deploy(environment, section)
    on_gcp = pulumi.ResourceOptions(providers=[gcp_provider(environment, section, after=services)])
    stop = stopping(section, stop_hooks, on_gcp)
    if stop:
        stop_hooks.where = stop.stop
        hooks, *queue_hooks = (joined_hooks(stop_hooks.binding, each) for each in (hooks, *queue_hooks))
    ground = lay(environment, section, hooks, on_gcp)
    outputs.export_accounts(ground.emails)
    wired = {**stop_of(stop), **pay.on_gcp(section, on_gcp)}
    made = _vms(environment, section, ground, queue_hooks, on_gcp, stop, wired)
    made |= _jobs(environment, section, ground, on_gcp, wired)
    if ground.cluster is not None and section.cluster is not None:
        outputs.export_clusters({section.cluster.key: ground.cluster})
        made |= _workloads(section, section.cluster, ground, ground.cluster, stop, wired, on_gcp)
    accelerated = {key: one.name for key, one in ground.pools.items() if one.facts.gpus or one.facts.tpu_chips}
    deploy_budgets(environment, section, services, stop, ground.cluster, accelerated)
    return made


def _vms(
    environment: Environment,
    section: Gcp,
    ground: Ground,
    hooks: Sequence[pulumi.ResourceHookBinding],
    on_gcp: pulumi.ResourceOptions,
    stop: Stopping | None,
    wired: Wired,
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """TPU VMs and GPU VMs; the targets of jobs that make their own."""
    if section.vms is None:
        return {}
    # Imported here: a stack without machines does not load them.
    from . import vms

    assert ground.place is not None  # the section was checked for it
    return vms.deploy(section, section.vms, ground.place, labels(environment), hooks, on_gcp, wired, stop)


def _jobs(
    environment: Environment, section: Gcp, ground: Ground, on_gcp: pulumi.ResourceOptions, wired: Wired
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """Image repositories, Google Batch and Vertex AI; the targets of their jobs."""
    if section.batch is None and section.vertex is None and not section.images:
        return {}
    from . import jobs  # as above

    jobs.images(section, on_gcp)
    made: dict[str, pulumi.Output[dict[str, Any]]] = {}
    if section.batch is not None:
        assert ground.place is not None  # the section was checked for it
        made |= jobs.batch(section, section.batch, ground.place, labels(environment), on_gcp, wired)
    if section.vertex is not None:
        made |= jobs.vertex(section, section.vertex, labels(environment), on_gcp, wired)
    return made


def _workloads(
    section: Gcp,
    cluster: Cluster,
    ground: Ground,
    whole: pulumi.Output[contract.GkeCluster],
    stop: Stopping | None,
    wired: Wired,
    on_gcp: pulumi.ResourceOptions,
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """What is put into the cluster; the targets of jobs there, by name."""
    if section.workloads is None:
        return {}
    # Imported here: a stack without workloads never imports pulumi_kubernetes.
    from ..gke import workloads
    from ..gke.provider import kubernetes_provider

    in_cluster = pulumi.ResourceOptions(providers=[kubernetes_provider(cluster.key, whole)])
    pools = {key: Pool(facts=made.facts, name=made.name) for key, made in ground.pools.items()}
    if isinstance(cluster, StackCluster):
        pools = {key: Pool(facts=facts, name=facts.name) for key, facts in pools_of_stack(cluster).items()} | pools
    if faults := section.workloads.unknown_pools(pools):
        raise pulumi.RunError("\n".join(f"gcp.workloads.{path}: {text}" for path, text in faults))
    if stop and section.workloads.queueing:
        workloads.admit_stop(section.workloads.queueing, stop.made.email, in_cluster)
    if section.workloads.code is not None:
        args = CodeBucketArgs(
            spec=section.workloads.code,
            project=section.project,
            region=section.region,
            readers=workloads.code_readers(section.workloads, ground.emails),
        )
        wired = {**wired, "code_bucket": CodeBucket("gke-code", args, on_gcp).bucket}
    made = outputs.targets(whole, workloads.deploy(section.workloads, pools, ground.emails, in_cluster), wired)
    workloads.publish(section.workloads, made, in_cluster)
    return made


def lay(
    environment: Environment, section: Gcp, hooks: pulumi.ResourceHookBinding, on_gcp: pulumi.ResourceOptions
) -> Ground:
    """Network, accounts, cluster and pools, as far as the section has them."""
    place = network_of(section, on_gcp)
    if place is not None:
        outputs.export_network(place.whole)
    if section.cluster is None:
        return Ground(None, {}, _workload_accounts(section, _pool_of(section), on_gcp), place)
    nodes = _node_account(section, on_gcp)
    bare = _cluster(section, section.cluster, place, nodes, on_gcp)
    # A project has no such pool before its first cluster.
    emails = _workload_accounts(section, bare.workload_pool, on_gcp)
    if nodes is None:
        return Ground(bare.whole, {}, emails, place)
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
    whole = promised(pulumi.Output.all(bare.whole, names), lambda known: _with_pools(section, known[0], known[1]))
    return Ground(whole, pools, emails, place)


def _pool(key: str, spec: AnyPool, common: PoolArgs, on_gcp: pulumi.ResourceOptions) -> pulumi.Output[str]:
    """Makes a pool; its physical name."""
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
    """The e-mail of what nodes run as; none where there are no nodes."""
    if not section.pools and not isinstance(section.cluster, CreatedCluster):
        return None
    spec = section.accounts.nodes
    if isinstance(spec, ExistingNodeAccount):
        return pulumi.Output.from_input(spec.email)
    return NodeServiceAccount("nodes", NodeServiceAccountArgs(spec=spec, project=section.project), on_gcp).email


@dataclass(frozen=True)
class _Bare:
    """A cluster without the pools that are made here; apart for the reason that Place has."""

    whole: pulumi.Output[contract.GkeCluster]
    name: pulumi.Input[str]
    location: pulumi.Input[str]
    workload_pool: pulumi.Input[str]


def _cluster(
    section: Gcp,
    cluster: Cluster,
    place: Place | None,
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
            whole = promised(known, lambda one: contract.GkeCluster(project=section.project, pools={}, **one))
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
