"""Existing Google Cloud resources that an environment refers to: subnets, clusters and accounts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from accel.diagnostics.findings import Finding
from accel.rules.gke.clusters import reaches
from accel.rules.table import rule

MISSING = rule("gcp.existing.missing")
SUBNET_NETWORK = rule("gcp.existing.subnet-network")
SUBNET_RANGES = rule("gcp.existing.subnet-ranges")
NO_WAY_OUT = rule("gcp.existing.egress")
GOOGLE_ONLY = rule("gcp.existing.egress-google-only")
CLUSTER_STATE = rule("gcp.existing.cluster-state")
CLUSTER_ENDPOINT = rule("gcp.existing.cluster-endpoint")
CLUSTER_VERSION = rule("gcp.existing.cluster-version")
CLUSTER_ADDON = rule("gcp.existing.cluster-addon")
CLUSTER_API = rule("gcp.existing.cluster-api")
ACCOUNT_ROLES = rule("gcp.existing.node-account")

NODE_ROLES = ("roles/logging.logWriter", "roles/monitoring.metricWriter")
NODE_ROLES_WHOLE = frozenset(
    {"roles/container.defaultNodeServiceAccount", "roles/container.nodeServiceAccount", "roles/editor", "roles/owner"}
)
"""Roles that include all of NODE_ROLES. Source: the page of ACCOUNT_ROLES."""

JOBS_NEED = "1.29"
"""Kubernetes version since which Indexed Jobs retry each index separately (backoffLimitPerIndex, enabled by default
since then). Source: https://kubernetes.io/blog/2025/05/13/kubernetes-v1-33-jobs-backoff-limit-per-index-goes-ga and
KEP-3850"""
FLEX_NEEDS = {"gpu": "1.32.2-gke.1652000", "tpu": "1.33.0-gke.1712000"}
"""GKE version that flex-start pools need, by kind of accelerator. Source: the page of CLUSTER_VERSION."""

_WHERE = "check the name, the project, and whose credentials these are"


@dataclass(frozen=True, slots=True)
class SubnetFacts:
    """A subnet as described by Compute Engine. `ranges` are the names of its secondary ranges; `nat` says whether Cloud
    NAT serves it, None if the routers may not be read."""

    network: str
    ranges: frozenset[str]
    google_access: bool
    nat: bool | None


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """A cluster as described by GKE. `addons` are the names of the enabled ones; `apis` are the groups of its API
    server, None if the API server may not be asked."""

    status: str
    endpoint: str
    ca_certificate: str
    version: str
    workload_pool: str
    addons: frozenset[str]
    apis: frozenset[str] | None


def exists(field: str, name: str, there: bool) -> list[Finding]:
    return [] if there else [MISSING.finding(field, f'is "{name}", which is not there', _WHERE)]


def subnet(field: str, facts: SubnetFacts, network: str, ranges: Mapping[str, str], *, private: bool) -> list[Finding]:
    """Check a subnet. `ranges`: field by secondary range; `private`: machines there have no public addresses."""
    found: list[Finding] = []
    if facts.network != network:
        message = f"is a subnet of {facts.network}, not of {network}"
        found.append(SUBNET_NETWORK.finding(f"{field}.subnetwork", message, "name one of the network"))
    for name, at in ranges.items():
        if name not in facts.ranges:
            has = ", ".join(sorted(facts.ranges)) or "none"
            message = f'is "{name}", and the subnet has no such range: {has}'
            found.append(SUBNET_RANGES.finding(f"{field}.{at}", message, "name one that it has, or add it"))
    if private and facts.nat is False:
        if not facts.google_access:
            message = "has neither Private Google Access nor Cloud NAT, and its machines have no public addresses"
            found.append(NO_WAY_OUT.finding(f"{field}.subnetwork", message, "switch one of them on"))
        else:
            message = "has no Cloud NAT, so machines there pull images from Google's registries alone"
            fix = "add Cloud NAT, or keep every image and package in Artifact Registry"
            found.append(GOOGLE_ONLY.finding(f"{field}.subnetwork", message, fix))
    return found


def cluster(
    facts: ClusterFacts,
    *,
    endpoint: str,
    ca_certificate: str,
    addons: Mapping[str, str],
    flex: Collection[str],
    workload_pool: bool,
) -> list[Finding]:
    """Check endpoint and certificate. `addons`: what needs each add-on; `flex`: kinds of accelerators of flex-start
    pools; `workload_pool`: pods use Google service accounts."""
    found: list[Finding] = []
    if facts.status not in ("RUNNING", "RECONCILING"):
        found.append(CLUSTER_STATE.finding("name", f"names a cluster that is {facts.status}", "wait, or repair it"))
    given = endpoint.removeprefix("https://")
    if facts.endpoint not in (given, given.removesuffix(":443")):
        message = f"is {endpoint}, and GKE says {facts.endpoint}"
        found.append(CLUSTER_ENDPOINT.finding("endpoint", message, f"write {facts.endpoint}"))
    elif facts.ca_certificate and ca_certificate.strip() != facts.ca_certificate:
        message = "is not the certificate that GKE has of the cluster"
        fix = "take masterAuth.clusterCaCertificate of gcloud container clusters describe"
        found.append(CLUSTER_ENDPOINT.finding("ca_certificate", message, fix))
    needs = {"jobs": JOBS_NEED, **{f"flex-start pools of {kind}s": FLEX_NEEDS[kind] for kind in flex}}
    for what, least in needs.items():
        if not reaches(facts.version, least):
            message = f"names a cluster of version {facts.version}, and {what} need {least}"
            found.append(CLUSTER_VERSION.finding("name", message, "upgrade the control plane"))
    if workload_pool and not facts.workload_pool:
        message = "names a cluster without workload identity, and accounts.workloads need it"
        fix = "gcloud container clusters update NAME --workload-pool=PROJECT.svc.id.goog"
        found.append(CLUSTER_ADDON.finding("name", message, fix))
    for name, user in addons.items():
        if name not in facts.addons:
            message = f"names a cluster without {name}, which {user} needs"
            fix = f"gcloud container clusters update NAME --update-addons={name}=ENABLED"
            found.append(CLUSTER_ADDON.finding("name", message, fix))
    return found


def controllers(facts: ClusterFacts, wanted: Mapping[str, str]) -> list[Finding]:
    """Check for controllers that nobody installs. `wanted` is the field that excludes each, by API group."""
    if facts.apis is None:
        return []
    return [
        CLUSTER_API.finding(
            field, f"is false, and the cluster has no API {group}", "install it, or write install: true"
        )
        for group, field in wanted.items()
        if group not in facts.apis
    ]


def node_account(field: str, email: str, roles: Sequence[str]) -> list[Finding]:
    missing = [role for role in NODE_ROLES if role not in roles]
    if not missing or NODE_ROLES_WHOLE.intersection(roles):
        return []
    message = f"is {email}, which has not {' and '.join(missing)} in the project"
    return [ACCOUNT_ROLES.finding(field, message, "grant roles/container.defaultNodeServiceAccount")]
