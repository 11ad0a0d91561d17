"""The Google section of an environment against the project's resources."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from accel.clouds.google.api import Google
from accel.clouds.kubernetes.clusters import ClusterName, Clusters
from accel.contract.gke import GkeTarget
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound
from accel.diagnostics.findings import Finding, under
from accel.json_values import entries, object_at
from accel.rules.gcp import existing as rules
from accel.rules.gcp.existing import ClusterFacts, SubnetFacts
from components.gcp.tpu_pool import TpuPoolSpec
from components.kubernetes.storage import BucketVolume, FilestoreVolume

from ...environment.gcp.config import (
    CreatedCluster,
    ExistingCluster,
    ExistingNetwork,
    ExistingNodeAccount,
    ExistingSubnet,
    Gcp,
)
from .checks import CheckResult

T = TypeVar("T")

ADDONS = {
    "GcsFuseCsiDriver": "gcsFuseCsiDriverConfig",
    "GcpFilestoreCsiDriver": "gcpFilestoreCsiDriverConfig",
}
"""Names of add-ons in gcloud, and in the API. Source:
https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters#addonsconfig"""
VOLUMES: Mapping[type[object], str] = {BucketVolume: "GcsFuseCsiDriver", FilestoreVolume: "GcpFilestoreCsiDriver"}
GROUPS = {"kueue": "kueue.x-k8s.io", "jobset": "jobset.x-k8s.io"}


class GoogleReader:
    """A reader that records what was read, and what was refused."""

    def __init__(self, google: Google | None = None) -> None:
        self._google = google or Google()
        self.looked: dict[str, None] = {}
        self.unread: dict[str, str] = {}

    def ask(self, what: str, call: Callable[[Google], T]) -> T | None:
        """Return None if refused or not answered. Raise NoCredentials, and NotFound for what does not exist."""
        try:
            answer = call(self._google)
        except NotFound:
            self.looked[what] = None
            raise
        except (CloudRefused, CloudSilent) as error:
            self.unread[what] = error.message
            return None
        self.looked[what] = None
        return answer

    def get(self, what: str, api: str, path: str) -> tuple[bool, dict[str, Any] | None]:
        """Return whether the object exists, and the object; (True, None) where it may not be read."""
        try:
            return True, self.ask(what, lambda google: google.get(api, path))
        except NotFound:
            return False, None


def check_google(section: Gcp) -> CheckResult:
    """Raise NoCredentials."""
    reader = GoogleReader()
    found = [*_network(section, reader), *_cluster(section, reader), *_node_account(section, reader)]
    return CheckResult(
        tuple(found), tuple(reader.looked), tuple(f"{what}: {why}" for what, why in reader.unread.items())
    )


def _network(section: Gcp, reader: GoogleReader) -> Iterator[Finding]:
    network = section.network
    if not isinstance(network, ExistingNetwork):
        return
    there, _ = reader.get("compute.networks.get", "compute", network.network)
    yield from under("network", rules.exists("network", network.network, there))
    for region, spec in network.subnets.items() if there else ():
        there, subnet = reader.get("compute.subnetworks.get", "compute", spec.subnetwork)
        at = f"network.subnets.{region}"
        yield from rules.exists(f"{at}.subnetwork", spec.subnetwork, there)
        if subnet is not None:
            facts = _subnet_facts(reader, spec.subnetwork, subnet)
            yield from rules.subnet(
                at, facts, network.network, _ranges(section, region, spec), private=_private(section)
            )


def _ranges(section: Gcp, region: str, spec: ExistingSubnet) -> dict[str, str]:
    if not isinstance(section.cluster, CreatedCluster) or region != section.region:
        return {}
    return {spec.pods_range: "pods_range", spec.services_range: "services_range"}


def _private(section: Gcp) -> bool:
    nodes = isinstance(section.cluster, CreatedCluster) and section.cluster.private_nodes
    targets = [
        *(section.vms.targets.values() if section.vms else ()),
        *(section.batch.targets.values() if section.batch else ()),
    ]
    return nodes or any(not getattr(target, "external_address", True) for target in targets)


def _subnet_facts(reader: GoogleReader, path: str, subnet: Mapping[str, Any]) -> SubnetFacts:
    ranges = [object_at(each) for each in entries(subnet.get("secondaryIpRanges"))]
    return SubnetFacts(
        network=_below_projects(subnet.get("network")),
        ranges=frozenset(str(each.get("rangeName")) for each in ranges),
        google_access=bool(subnet.get("privateIpGoogleAccess")),
        nat=_nat(reader, path, _below_projects(subnet.get("network"))),
    )


def _nat(reader: GoogleReader, path: str, network: str) -> bool | None:
    """Return whether a Cloud NAT of the region serves a subnet's nodes. Source:
    https://docs.cloud.google.com/compute/docs/reference/rest/v1/routers"""
    region = path.partition("/subnetworks/")[0]
    try:
        routers = reader.ask(
            "compute.routers.list", lambda google: list(google.pages("compute", f"{region}/routers", "items"))
        )
    except NotFound:
        return None
    if routers is None:
        return None
    for router in routers:
        if _below_projects(router.get("network")) != network:
            continue
        for nat in (object_at(each) for each in entries(router.get("nats"))):
            listed = [object_at(each) for each in entries(nat.get("subnetworks"))]
            if nat.get("sourceSubnetworkIpRangesToNat") != "LIST_OF_SUBNETWORKS" or any(
                _below_projects(each.get("name")) == path for each in listed
            ):
                return True
    return False


def _below_projects(link: object) -> str:
    _, found, rest = str(link or "").partition("projects/")
    return f"{found}{rest}"


def _cluster(section: Gcp, reader: GoogleReader) -> Iterator[Finding]:
    given = section.cluster
    if not isinstance(given, ExistingCluster):
        return
    path = f"v1/projects/{section.project}/locations/{given.location}/clusters/{given.name}"
    there, found = reader.get("container.clusters.get", "container", path)
    yield from under("cluster", rules.exists("name", given.name, there))
    if found is None:
        return
    facts = _cluster_facts(section, given, found, reader)
    judged = rules.cluster(
        facts,
        endpoint=given.endpoint,
        ca_certificate=given.ca_certificate,
        addons=_addons(section),
        flex=_flex(section),
        workload_pool=bool(section.accounts.workloads),
    )
    yield from under("cluster", judged)
    yield from under("workloads", rules.controllers(facts, _controllers(section)))


def _cluster_facts(
    section: Gcp, given: ExistingCluster, found: Mapping[str, Any], reader: GoogleReader
) -> ClusterFacts:
    addons = object_at(found, "addonsConfig")
    return ClusterFacts(
        status=str(found.get("status")),
        endpoint=str(found.get("endpoint")),
        ca_certificate=str(object_at(found, "masterAuth").get("clusterCaCertificate") or ""),
        version=str(found.get("currentMasterVersion")),
        workload_pool=str(object_at(found, "workloadIdentityConfig").get("workloadPool") or ""),
        addons=frozenset(name for name, key in ADDONS.items() if object_at(addons, key).get("enabled")),
        apis=_apis(section, given, reader) if _controllers(section) else None,
    )


def _apis(section: Gcp, given: ExistingCluster, reader: GoogleReader) -> frozenset[str] | None:
    """Return the groups of the API server. Source: https://kubernetes.io/docs/reference/using-api/#api-groups"""
    target = GkeTarget(
        project=section.project,
        location=given.location,
        cluster=given.name,
        endpoint=given.endpoint,
        ca_certificate=given.ca_certificate,
        namespace="default",
        pools={},
    )
    name = ClusterName(section.project, given.location, given.name)
    try:
        answer = reader.ask("the cluster's API groups", lambda _: Clusters(name, target).api.get("/apis"))
    except NotFound:
        return None
    if answer is None:
        return None
    return frozenset(str(object_at(each).get("name")) for each in entries(answer.get("groups")))


def _addons(section: Gcp) -> dict[str, str]:
    volumes = section.workloads.volumes if section.workloads else {}
    return {
        VOLUMES[type(each.volume)]: f"workloads.volumes.{key}"
        for key, each in volumes.items()
        if type(each.volume) in VOLUMES
    }


def _flex(section: Gcp) -> list[str]:
    pools = [pool for pool in section.pools.values() if pool.capacity == "flex-start"]
    return sorted({"tpu" if isinstance(pool, TpuPoolSpec) else "gpu" for pool in pools})


def _controllers(section: Gcp) -> dict[str, str]:
    releases = section.workloads.releases if section.workloads else []
    return {GROUPS[each.release]: f"releases[{i}].install" for i, each in enumerate(releases) if not each.install}


def _node_account(section: Gcp, reader: GoogleReader) -> Iterator[Finding]:
    spec = section.accounts.nodes
    if not isinstance(spec, ExistingNodeAccount):
        return
    field = "accounts.nodes.email"
    # Compute Engine's default account belongs to its project, whose id is not in the address.
    project = spec.email.partition("@")[2].rpartition(".iam.gserviceaccount.com")[0] or section.project
    there, _ = reader.get("iam.serviceAccounts.get", "iam", f"v1/projects/{project}/serviceAccounts/{spec.email}")
    yield from rules.exists(field, spec.email, there)
    if not there:
        return
    try:
        policy = reader.ask(
            "resourcemanager.projects.getIamPolicy",
            lambda google: google.post(
                "cloudresourcemanager", f"v1/projects/{section.project}:getIamPolicy", {}, repeat=True
            ),
        )
    except NotFound:
        return
    if policy is None:
        return
    bindings = [object_at(each) for each in entries(policy.get("bindings"))]
    member = f"serviceAccount:{spec.email}"
    roles = [str(each.get("role")) for each in bindings if member in entries(each.get("members"))]
    yield from rules.node_account(field, spec.email, roles)
