"""The Google Cloud outputs of a stack, built as the models of accel.contract: an invalid one fails the update."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi

from accel.contract.gke import GkeCluster, GkeTarget, GkeVolume, PodSecurity
from accel.contract.network import GcpNetwork
from accel.contract.targets import write

from ..export_model import promise_output


@dataclass(frozen=True, kw_only=True)
class GkeQueue:
    """A place for jobs in the cluster, as `targets` needs it. `pools`: keys of the cluster's pools that it may use."""

    namespace: pulumi.Input[str]
    queue: pulumi.Input[str] | None = None
    priorities: Sequence[str] = ()
    service_account: pulumi.Input[str] = "default"
    pod_security: PodSecurity | None = None
    jobset: bool = False
    pools: Sequence[str]
    volumes: Mapping[str, GkeVolume] = field(default_factory=dict[str, GkeVolume])


def export_network(network: pulumi.Output[GcpNetwork]) -> None:
    pulumi.export("gcp_network", promise_output(network, lambda one: one.model_dump(mode="json", by_alias=True)))


def export_clusters(clusters: Mapping[str, pulumi.Output[GkeCluster]]) -> None:
    pulumi.export(
        "clusters",
        {
            key: promise_output(cluster, lambda one: one.model_dump(mode="json", by_alias=True, exclude_none=True))
            for key, cluster in clusters.items()
        },
    )


def export_accounts(emails: Mapping[str, pulumi.Output[str]]) -> None:
    """Export `service_accounts`: the e-mail of each Google service account that pods run as, by its key."""
    if emails:
        pulumi.export("service_accounts", dict(emails))


def targets(
    cluster: pulumi.Output[GkeCluster], queues: Mapping[str, GkeQueue], more: Mapping[str, pulumi.Output[Any]]
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """Return each queue as a target, by its name, once all that it names exists. `more`: values for every target."""
    return {name: _target(name, cluster, queue, more) for name, queue in queues.items()}


def _target(
    name: str, cluster: pulumi.Output[GkeCluster], queue: GkeQueue, more: Mapping[str, pulumi.Output[Any]]
) -> pulumi.Output[dict[str, Any]]:
    known = pulumi.Output.all(
        cluster=cluster, namespace=queue.namespace, queue=queue.queue, service_account=queue.service_account, **more
    )
    return promise_output(
        known, lambda wired: write({name: _gke(queue, wired)})[name], optional=() if queue.queue else ("queue",)
    )


def _gke(queue: GkeQueue, wired: Mapping[str, Any]) -> GkeTarget:
    cluster: GkeCluster = wired["cluster"]
    return GkeTarget(
        project=cluster.project,
        location=cluster.location,
        cluster=cluster.name,
        endpoint=cluster.endpoint,
        ca_certificate=cluster.ca_certificate,
        namespace=wired["namespace"],
        queue=wired["queue"],
        priorities=list(queue.priorities),
        service_account=wired["service_account"],
        pod_security=queue.pod_security,
        jobset=queue.jobset,
        pools={key: cluster.pools[key] for key in queue.pools},
        volumes=dict(queue.volumes),
        allowances=wired.get("allowances"),
        stop=wired.get("stop"),
        code_bucket=wired.get("code_bucket"),
    )
