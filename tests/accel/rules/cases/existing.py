"""What exists before a stack, on both clouds."""

from dataclasses import replace
from typing import Any

from accel.rules import Finding
from accel.rules.aws import existing
from accel.rules.aws.existing import GroupFacts, RoleFacts, SubnetFacts
from accel.rules.gcp import existing as gcp_existing
from accel.rules.gcp.existing import ClusterFacts

from .case import Case

_SUBNET = SubnetFacts("vpc-1", "us-east-1a", 200, False, "nat-1", frozenset())
_GROUP = GroupFacts("vpc-1", (range(65536),))
_HTTPS = {443: "ECS"}


def _subnet(**changes: Any) -> list[Finding]:
    return existing.subnets({"subnet-1": "subnet_ids[0]"}, {"subnet-1": replace(_SUBNET, **changes)}, "vpc-1", ["s3"])


def _group(facts: GroupFacts) -> list[Finding]:
    return existing.groups({"sg-1": "security_group_ids[0]"}, {"sg-1": facts}, "vpc-1", _HTTPS)


def _role(**changes: Any) -> list[Finding]:
    return existing.role("job_role", "r", RoleFacts(True, **changes), "ecs-tasks.amazonaws.com")


AWS = [
    Case(
        "aws.existing.missing", "vpc_id", ('"vpc-1"', "not there"), "check the id",
        lambda: existing.vpc("vpc_id", "vpc-1", ()), lambda: existing.vpc("vpc_id", "vpc-1", {"vpc-1"}),
    ),
    Case(
        "aws.existing.vpc", "subnet_ids[0]", ("vpc-2",), "subnets of vpc-1",
        lambda: _subnet(vpc="vpc-2"), _subnet,
    ),
    Case(
        "aws.existing.egress", "subnet_ids[0]", ("igw-1", "no public address", "leads to s3"), "NAT gateway",
        lambda: _subnet(default_route="igw-1"), lambda: _subnet(default_route="igw-1", public_addresses=True),
    ),
    Case(
        "aws.existing.addresses", "subnet_ids[0]", ("no free address",), "larger subnet",
        lambda: _subnet(free_addresses=0), lambda: _subnet(free_addresses=1),
    ),
    Case(
        "aws.existing.security-group", "security_group_ids[0]", ("sg-1", "TCP port 443"), "allow outgoing TCP 443",
        lambda: _group(GroupFacts("vpc-1", (range(80, 443),))), lambda: _group(_GROUP),
    ),
    Case(
        "aws.existing.zone-offer", "instance_types", ("not offered in us-east-1a",), "subnets in us-east-1b",
        lambda: existing.offers({"us-east-1a"}, {"us-east-1b"}),
        lambda: existing.offers({"us-east-1a", "us-east-1b"}, {"us-east-1b"}),
    ),
    Case(
        "aws.existing.role-trust", "job_role", ("does not name ecs-tasks.amazonaws.com",), "assume it",
        lambda: _role(trusted=False), _role,
    ),
    Case(
        "aws.existing.role-actions", "job_role", ("allows logs:PutLogEvents",), "attach a policy",
        lambda: _role(lacking=("logs:PutLogEvents",)), _role,
    ),
]  # fmt: skip

_NET = "projects/p/global/networks/n"
_NODES = gcp_existing.SubnetFacts(_NET, frozenset({"pods"}), google_access=True, nat=True)
_CLUSTER = ClusterFacts("RUNNING", "203.0.113.7", "QQ==", "1.33.5-gke.1", "", frozenset(), frozenset({"apps"}))


def _nodes(**changes: Any) -> list[Finding]:
    return gcp_existing.subnet("s", replace(_NODES, **changes), _NET, {"pods": "pods_range"}, private=True)


def _cluster(needs: dict[str, Any] | None = None, **changes: Any) -> list[Finding]:
    given: dict[str, Any] = {"endpoint": "203.0.113.7", "ca_certificate": "QQ==", "addons": {}, "flex": ()}
    return gcp_existing.cluster(replace(_CLUSTER, **changes), workload_pool=False, **(given | (needs or {})))


GCP = [
    Case(
        "gcp.existing.missing", "name", ('"c"', "not there"), "check the name",
        lambda: gcp_existing.exists("name", "c", False), lambda: gcp_existing.exists("name", "c", True),
    ),
    Case(
        "gcp.existing.subnet-network", "s.subnetwork", ("networks/o",), "one of the network",
        lambda: _nodes(network="projects/p/global/networks/o"), _nodes,
    ),
    Case(
        "gcp.existing.subnet-ranges", "s.pods_range", ('"pods"', "no such range: none"), "name one that it has",
        lambda: _nodes(ranges=frozenset()), _nodes,
    ),
    Case(
        "gcp.existing.egress", "s.subnetwork", ("neither Private Google Access nor Cloud NAT",), "switch one",
        lambda: _nodes(google_access=False, nat=False), lambda: _nodes(google_access=False, nat=True),
    ),
    Case(
        "gcp.existing.egress-google-only", "s.subnetwork", ("Google's registries alone",), "add Cloud NAT",
        lambda: _nodes(nat=False), lambda: _nodes(nat=None),
    ),
    Case(
        "gcp.existing.cluster-state", "name", ("ERROR",), "repair",
        lambda: _cluster(status="ERROR"), lambda: _cluster(status="RECONCILING"),
    ),
    Case(
        "gcp.existing.cluster-endpoint", "endpoint", ("GKE says 203.0.113.8",), "write 203.0.113.8",
        lambda: _cluster(endpoint="203.0.113.8"), _cluster,
    ),
    Case(
        "gcp.existing.cluster-version", "name", ("1.28.9-gke.1", "1.29"), "upgrade",
        lambda: _cluster(version="1.28.9-gke.1"), lambda: _cluster(version="1.29.0-gke.1"),
    ),
    Case(
        "gcp.existing.cluster-addon", "name", ("without GcsFuseCsiDriver", "volumes.data"), "--update-addons",
        lambda: _cluster({"addons": {"GcsFuseCsiDriver": "volumes.data"}}),
        lambda: _cluster({"addons": {"GcsFuseCsiDriver": "v"}}, addons=frozenset({"GcsFuseCsiDriver"})),
    ),
    Case(
        "gcp.existing.cluster-api", "releases[0].install", ("no API kueue.x-k8s.io",), "install: true",
        lambda: gcp_existing.controllers(_CLUSTER, {"kueue.x-k8s.io": "releases[0].install"}),
        lambda: gcp_existing.controllers(replace(_CLUSTER, apis=None), {"kueue.x-k8s.io": "releases[0].install"}),
    ),
    Case(
        "gcp.existing.node-account", "email", ("roles/monitoring.metricWriter",), "defaultNodeServiceAccount",
        lambda: gcp_existing.node_account("email", "a@b", ["roles/logging.logWriter"]),
        lambda: gcp_existing.node_account("email", "a@b", ["roles/container.defaultNodeServiceAccount"]),
    ),
]  # fmt: skip

CASES = AWS + GCP
