"""The `workloads` section as components in a cluster, with a provider of its own, and the targets that they create."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pulumi

from accel.contract.gke import GkeCluster, GkePool, GkeVolume
from components.gcp.code_bucket import CodeBucket, CodeBucketArgs
from components.kubernetes.bundle import ReleaseBundle
from components.kubernetes.dcgm import DcgmExporter
from components.kubernetes.drivers import DriverInstaller, DriverInstallerArgs, DriverInstallerSpec
from components.kubernetes.health import GpuHealth
from components.kubernetes.namespace import JobNamespace, JobNamespaceArgs
from components.kubernetes.pools import Pool
from components.kubernetes.probe import DriverProbe, DriverProbeArgs
from components.kubernetes.provisioning_watchdog import ProvisioningWatchdog, ProvisioningWatchdogArgs
from components.kubernetes.queueing import (
    LocalQueues,
    LocalQueuesSpec,
    Queueing,
    QueueingArgs,
    QueueingSpec,
    check_name,
)
from components.kubernetes.stop_access import StopAccess, StopAccessArgs, StopAccessSpec
from components.kubernetes.storage import (
    BUCKET_ANNOTATIONS,
    BucketVolume,
    DiskVolume,
    FilestoreVolume,
    JobVolume,
    JobVolumeArgs,
)
from components.kubernetes.target_map import PublishedTargets, PublishedTargetsArgs, PublishedTargetsSpec

from ..allowances import Wired
from ..export_model import promise_output
from ..gcp import outputs
from ..gcp.budgets import Stopping
from ..gcp.cluster import ClusterContext, pools_of_stack
from ..gcp.config import Cluster, Gcp, StackCluster
from ..gcp.outputs import GkeQueue
from .config import Namespace, TargetSpec, Workloads

if TYPE_CHECKING:
    import pulumi_kubernetes as kubernetes


OS = "cloud.google.com/gke-os-distribution"


def deploy(
    section: Gcp,
    cluster: Cluster,
    context: ClusterContext,
    whole: pulumi.Output[GkeCluster],
    stop: Stopping | None,
    wired: Wired,
    on_gcp: pulumi.ResourceOptions,
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    workloads = section.workloads
    if workloads is None:
        return {}
    in_cluster = pulumi.ResourceOptions(providers=[kubernetes_provider(cluster.key, whole)])
    pools = {key: Pool(facts=made.facts, name=made.name) for key, made in context.pools.items()}
    if isinstance(cluster, StackCluster):
        pools = {key: Pool(facts=facts, name=facts.name) for key, facts in pools_of_stack(cluster).items()} | pools
    if faults := workloads.unknown_pools(pools):
        raise pulumi.RunError("\n".join(f"gcp.workloads.{path}: {text}" for path, text in faults))
    if stop and workloads.queueing:
        _admit_stop(workloads.queueing, stop.made.email, in_cluster)
    if workloads.code is not None:
        args = CodeBucketArgs(
            spec=workloads.code,
            project=section.project,
            region=section.region,
            readers=_code_readers(workloads, context.emails),
        )
        wired = {**wired, "code_bucket": CodeBucket("gke-code", args, on_gcp).bucket}
    targets = outputs.targets(whole, _queues(workloads, pools, context.emails, in_cluster), wired)
    _publish(workloads, targets, in_cluster)
    return targets


def kubernetes_provider(name: str, cluster: pulumi.Output[GkeCluster]) -> kubernetes.Provider:
    """Return a provider bound to the cluster's generated name: a replaced cluster has a new one, and all resources are
    created again there, before the old cluster is deleted. A new address or certificate of the same is an update."""
    # Imported here: a stack without workloads never imports pulumi_kubernetes.
    import pulumi_kubernetes as kubernetes

    return kubernetes.Provider(
        name,
        kubeconfig=_kubeconfig(cluster),
        # By default the provider takes each change of the kubeconfig for another cluster.
        cluster_identifier=promise_output(cluster, lambda one: f"{one.project}/{one.location}/{one.name}"),
        enable_server_side_apply=True,
        # Otherwise a change deletes and recreates a ConfigMap, and readers of targets find none for a moment.
        enable_config_map_mutable=True,
    )


def _kubeconfig(cluster: pulumi.Output[GkeCluster]) -> pulumi.Output[str]:
    """Return a kubeconfig without a secret: gke-gcloud-auth-plugin, on PATH, provides the credentials of its user.
    Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl"""
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "gke-gcloud-auth-plugin",
            "installHint": "install it: gcloud components install gke-gcloud-auth-plugin",
            "interactiveMode": "Never",
            "provideClusterInfo": True,
        }
    }
    server = {
        "server": promise_output(cluster, lambda one: f"https://{one.endpoint}"),
        "certificate-authority-data": promise_output(cluster, lambda one: one.ca_certificate),
    }
    return pulumi.Output.json_dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "cluster",
            "clusters": [{"name": "cluster", "cluster": server}],
            "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": "user"}}],
            "users": [{"name": "user", "user": user}],
        }
    )


def _queues(
    section: Workloads,
    pools: Mapping[str, Pool],
    emails: Mapping[str, pulumi.Output[str]],
    in_cluster: pulumi.ResourceOptions,
) -> dict[str, GkeQueue]:
    """Return the targets by name. `emails`: of Google service accounts, by their keys."""
    own_drivers = _drivers(section, pools, in_cluster)
    releases = [ReleaseBundle(each.release, each, in_cluster) for each in section.releases]
    # The engine cannot follow names that are constants: controllers come before the objects that their webhooks check,
    # and queues before the namespaces of their jobs, so that a destroy first ends the jobs, which hold the queues.
    queues: list[pulumi.Resource] = []
    if section.queueing:
        args = QueueingArgs(spec=section.queueing, pools=pools)
        queues.append(Queueing("queueing", args, _after(in_cluster, releases)))
        if asks := section.queueing.provisioning:
            watched = ProvisioningWatchdogArgs(spec=asks.watchdog, check=check_name("queueing"), pools=pools)
            ProvisioningWatchdog("provisioning-watchdog", watched, _after(in_cluster, releases))
    namespaces = {
        key: JobNamespace(
            key, JobNamespaceArgs(spec=spec, google_account=_account(spec, emails)), _after(in_cluster, queues)
        )
        for key, spec in section.namespaces.items()
    }
    if section.queueing and section.queueing.local_queues:
        local = LocalQueuesSpec(local_queues=section.queueing.local_queues)
        LocalQueues("local-queues", local, _after(in_cluster, [*queues, *namespaces.values()]))
    machines = sorted({pool.facts.machine_type for pool in pools.values()})
    for key, spec in section.volumes.items():
        namespace = namespaces[spec.namespace].namespace
        args = JobVolumeArgs(spec=spec.volume, claim=key, namespace=namespace, machine_types=machines)
        JobVolume(key, args, in_cluster)
    if section.health:
        GpuHealth("gpu-health", section.health, in_cluster)
    if section.dcgm:
        DcgmExporter("dcgm", section.dcgm, in_cluster)
    if section.verify:
        _verify(section, pools, namespaces, own_drivers, in_cluster)
    return {key: _target(section, target, pools, namespaces) for key, target in section.targets.items()}


def _admit_stop(queueing: QueueingSpec, email: pulumi.Input[str], in_cluster: pulumi.ResourceOptions) -> None:
    """Allow the function that stops the stack to hold its queues."""
    args = StopAccessArgs(spec=StopAccessSpec(queues=sorted(queueing.queues)), email=email)
    StopAccess("budget-stop", args, in_cluster)


def _code_readers(section: Workloads, emails: Mapping[str, pulumi.Output[str]]) -> dict[str, pulumi.Input[str]]:
    found = {key: _account(section.namespaces[key], emails) for key in section.coded}
    return {key: email for key, email in found.items() if email is not None}


def _after(opts: pulumi.ResourceOptions, before: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(before)))


def _publish(
    section: Workloads, targets: Mapping[str, pulumi.Output[dict[str, Any]]], in_cluster: pulumi.ResourceOptions
) -> None:
    """Publish each namespace's targets, as JSON, where `jobs` reads them without Pulumi."""
    by_namespace: dict[str, dict[str, pulumi.Output[str]]] = {}
    for name, target in targets.items():
        text = target.apply(lambda value: json.dumps(value, sort_keys=True))
        by_namespace.setdefault(section.targets[name].namespace, {})[name] = text
    for key, found in by_namespace.items():
        spec = PublishedTargetsSpec(namespace=section.namespaces[key].namespace)
        PublishedTargets(f"targets-{key}", PublishedTargetsArgs(spec=spec, targets=found), in_cluster)


def _drivers(
    section: Workloads, pools: Mapping[str, Pool], in_cluster: pulumi.ResourceOptions
) -> list[DriverInstaller]:
    made: list[DriverInstaller] = []
    for image, version in (("cos", section.drivers.cos), ("ubuntu", section.drivers.ubuntu)):
        asking = [pool for pool in pools.values() if _asks(pool.facts, image)]
        if asking:
            spec = DriverInstallerSpec.model_validate({"node_image": image, "version": version})
            args = DriverInstallerArgs(spec=spec, pool_names=[pool.name for pool in asking])
            made.append(DriverInstaller(f"driver-{image}", args, in_cluster))
    return made


def _asks(facts: GkePool, image: str) -> bool:
    return facts.driver == "daemonset" and facts.labels.get(OS) == image


def _account(spec: Namespace, emails: Mapping[str, pulumi.Output[str]]) -> pulumi.Input[str] | None:
    return spec.account if spec.account is None or "@" in spec.account else emails[spec.account]


def _verify(
    section: Workloads,
    pools: Mapping[str, Pool],
    namespaces: Mapping[str, JobNamespace],
    drivers: list[DriverInstaller],
    in_cluster: pulumi.ResourceOptions,
) -> None:
    assert section.verify
    proven = {key: pool for key, pool in pools.items() if pool.facts.gpus and not pool.facts.queued}
    args = DriverProbeArgs(spec=section.verify, namespace=next(iter(namespaces.values())).namespace, pools=proven)
    DriverProbe("driver-probe", args, _after(in_cluster, drivers))


def _target(
    section: Workloads,
    target: TargetSpec,
    pools: Mapping[str, Pool],
    namespaces: Mapping[str, JobNamespace],
) -> GkeQueue:
    namespace = namespaces[target.namespace]
    return GkeQueue(
        namespace=namespace.namespace,
        queue=target.queue,
        priorities=sorted(section.queueing.priorities) if section.queueing and target.queue else [],
        service_account=namespace.service_account,
        pod_security=section.namespaces[target.namespace].pod_security,
        jobset=section.has_jobset,
        pools=section.pools_of(target, pools),
        volumes={key: _volume(key, section.volumes[key].volume) for key in target.volumes},
    )


def _volume(key: str, spec: DiskVolume | FilestoreVolume | BucketVolume) -> GkeVolume:
    match spec:
        case DiskVolume():
            return GkeVolume(claim=key, read_only=spec.access == "many-readers")
        case FilestoreVolume():
            return GkeVolume(claim=key)
        case BucketVolume():
            return GkeVolume(claim=key, read_only=spec.read_only, annotations=BUCKET_ANNOTATIONS)
