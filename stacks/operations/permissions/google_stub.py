"""What Google Cloud, and the other stacks of a Google section, would answer while the program is run without them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from accel.contract.gke import POOL_LABEL, GkeCluster, GkePool
from accel.contract.network import GcpNetwork, GcpSubnet

if TYPE_CHECKING:
    from ...environment.config import Environment

NUMBER = "1"
ADDRESS = "192.0.2.1"
CERTIFICATE = "LQ=="


def computed(kind: str, name: str, project: str) -> dict[str, Any]:
    """What Google makes up, of a type whose attributes others read."""
    email = f"{name}@{project}.iam.gserviceaccount.com"
    match kind:
        case "gcp:serviceaccount/account:Account":
            return {"email": email, "member": f"serviceAccount:{email}", "name": f"projects/{project}/{email}"}
        case "gcp:container/cluster:Cluster":
            return {"endpoint": ADDRESS, "masterAuth": {"clusterCaCertificate": CERTIFICATE}}
        case "gcp:storage/bucket:Bucket":
            return {"projectNumber": int(NUMBER)}
        case _ if kind.startswith("gcp:"):
            return {"selfLink": f"https://www.googleapis.com/{name}"}
        case _:
            return {}


def answers(environment: Environment) -> dict[str, dict[str, Any]]:
    """Of the functions that the program calls, by token."""
    section = environment.gcp
    budgets = section.budgets.values() if section else ()
    currency = next((one.currency for one in budgets if one.currency), "USD")
    return {
        "gcp:organizations/getProject:getProject": {"number": NUMBER, "projectId": section.project if section else ""},
        "gcp:organizations/getBillingAccount:getBillingAccount": {"currencyCode": currency, "open": True},
        "pulumi:pulumi:readStackOutputs": {"outputs": outputs(environment)},
    }


def outputs(environment: Environment) -> dict[str, Any]:
    """What another stack would export: no permission depends on it, so pools are named and no more."""
    section = environment.gcp
    if section is None:
        return {}
    subnet = GcpSubnet(subnetwork="subnet", pods_range="pods", services_range="services", max_pods_per_node=110)
    network = GcpNetwork(project=section.project, network="network", subnets={section.region: subnet})
    key = getattr(section.cluster, "key", "cluster")
    named = {name: _pool(name, section.region) for name in _pools(section.workloads and section.workloads.model_dump())}
    cluster = GkeCluster(
        project=section.project, location=section.region, name="cluster", endpoint=ADDRESS, pools=named,
        ca_certificate=CERTIFICATE, workload_pool=f"{section.project}.svc.id.goog",
    )  # fmt: skip
    return {"gcp_network": _shown(network), "clusters": {key: _shown(cluster)}}


def _shown(promise: GcpNetwork | GkeCluster) -> dict[str, Any]:
    return promise.model_dump(mode="json", by_alias=True, exclude_none=True)


def _pool(key: str, region: str) -> GkePool:
    return GkePool(
        name=key, key=key, machine_type="e2-standard-4", zones=[f"{region}-a"], capacity="on-demand", max_nodes=1,
        labels={POOL_LABEL: key}, cpu_m=3_000, memory_mib=8_000,
    )  # fmt: skip


def _pools(document: Any) -> Iterator[str]:
    """The pools that a section's workloads name, wherever they do."""
    if isinstance(document, dict):
        members = cast("dict[str, Any]", document)
        named = [members.get("pool"), *(members.get("pools") or ())]
        yield from (each for each in named if isinstance(each, str))
        for value in members.values():
            yield from _pools(value)
    elif isinstance(document, list | tuple):
        for value in cast("list[Any]", document):
            yield from _pools(value)
