"""What a person can get wrong in the gcp section, and the line that says so."""

import copy
from typing import Any

import pytest

from accel.diagnostics.faults import parse_path, replace_value
from stacks.environment.config import load_environment, warnings
from tests.stacks.test_config import faults
from tests.support.gcp import CA, PROJECT

ENVIRONMENT: dict[str, Any] = {
    "owner": "ml-platform",
    "labels": {"environment": "dev"},
    "gcp": {
        "project": PROJECT,
        "region": "us-central1",
        "network": {
            "kind": "create",
            "subnets": {"us-central1": {"nodes": "10.60.0.0/20", "pods": "10.64.0.0/12", "services": "10.61.0.0/20"}},
        },
        "cluster": {
            "kind": "create",
            "location": "us-central1",
            "node_locations": ["us-central1-a", "us-central1-c"],
            "authorized_networks": {"office": "203.0.113.0/24"},
        },
        "pools": {
            "system": {"kind": "cpu", "min_nodes": 1, "initial_nodes": 1, "max_nodes": 3, "zones": ["us-central1-a"]},
            "a100": {"kind": "gpu", "machine_type": "a2-highgpu-1g", "max_nodes": 4},
        },
        "accounts": {
            "workloads": {"training": {"namespace": "training", "service_account": "trainer", "read_buckets": ["data"]}}
        },
    },
}
SYSTEM = {"system": ENVIRONMENT["gcp"]["pools"]["system"]}
A100 = ENVIRONMENT["gcp"]["pools"]["a100"]
EXISTING = {
    "kind": "existing",
    "network": "projects/host-1234/global/networks/shared",
    "subnets": {
        "us-central1": {
            "subnetwork": "projects/host-1234/regions/us-central1/subnetworks/gke",
            "pods_range": "gke-pods",
            "services_range": "gke-services",
        }
    },
}
THERE = {"kind": "existing", "name": "ml", "location": "us-central1", "endpoint": "203.0.113.7", "ca_certificate": CA}


def put(path: str, value: Any, into: dict[str, Any] | None = None) -> dict[str, Any]:
    """The environment with one value changed; None takes it out."""
    return replace_value(copy.deepcopy(into or ENVIRONMENT), parse_path(path), value)


def test_a_whole_section_has_nothing_to_warn_of() -> None:
    assert warnings(load_environment(ENVIRONMENT)) == []


QUEUED = {
    "releases": [{"release": "kueue", "install": False, "installed_by": "somebody"}],
    "namespaces": {"jobs": {"namespace": "jobs"}},
    "queueing": {
        "queues": {"training": {"pools": [{"pool": "a100"}]}},
        "local_queues": {"jobs": {"namespace": "jobs", "queue": "trainin"}},
    },
    "targets": {"gke": {"namespace": "jobs", "queue": "jobs"}},
}
"""Workloads with a local queue of a queue that is not there."""

WRONG = [
    ("gcpp", {}, "gcpp: unknown key; did you mean gcp?"),
    ("gcp.pool", {}, "gcp.pool: unknown key; did you mean pools?"),
    ("gcp.project", "MY_PROJECT", 'gcp.project: is "MY_PROJECT"; "MY_PROJECT" is a placeholder'),
    ("gcp.project", "42", 'gcp.project: is "42"'),
    ("gcp.region", "us-central1-a", 'gcp.region: is "us-central1-a", which is no region'),
    ("gcp.network", None, "gcp.network: is missing; a cluster that is made needs one"),
    ("gcp.network", {"kind": "made"}, "gcp.network.kind: must be one of 'create', 'existing', 'stack', is 'made'"),
    ("gcp.network.subnets.us-central1.pods", "10.60.0.0/12",
     'gcp.network.subnets.us-central1.pods: is "10.60.0.0/12"; write 10.48.0.0/12'),
    ("gcp.network", {**EXISTING, "network": "shared"}, 'gcp.network.network: is "shared"; write projects/'),
    ("gcp.network.subnets", {"us-east1": ENVIRONMENT["gcp"]["network"]["subnets"]["us-central1"]},
     "gcp.network.subnets: has none in us-central1, where the cluster is; nearest: us-east1"),
    ("gcp.cluster", None, "gcp.pools: are in no cluster; add cluster"),
    ("gcp.cluster", {**THERE, "location": "us-east1"}, "gcp.cluster.location: is us-east1, and the sec"),
    ("gcp.cluster.control_plane_cidr", "10.61.0.0/28",
     "gcp.cluster.control_plane_cidr: is 10.61.0.0/28, which overlaps network.subnets.us-central1.services"),
    ("gcp.cluster.deletion_protectoin", True, "gcp.cluster.deletion_protectoin: unknown key; did you mean deletion_pr"),
    ("gcp.cluster", {**THERE, "endpoint": "https://203.0.113.7"}, 'gcp.cluster.endpoint: is "https://203.0.113.7"'),
    ("gcp.cluster.node_locations", [], "gcp.pools.a100.zones: is missing, and the zones of the cluster's nodes"),
    ("gcp.pools.a100.zones", ["us-east5-a"], 'gcp.pools.a100.zones[0]: is "us-east5-a", which is no zone of us-'),
    ("gcp.pools.a100.kind", "gpus", "gcp.pools.a100.kind: must be one of 'cpu', 'gpu', 'tpu', is 'gpus'"),
    ("gcp.pools.a100.max_node", 3, "gcp.pools.a100.max_node: unknown key; did you mean max_nodes?"),
    ("gcp.pools.a100.initial_nodes", 3, "gcp.pools.a100.initial_nodes: is 3 in each of 2 zones, 6 together"),
    ("gcp.pools.a100", {**A100, "min_nodes": 3, "initial_nodes": 1},
     "gcp.pools.a100.initial_nodes: is 1 in each of 2 zones, 2 together"),
    ("gcp.pools.a100.compact_placement", True, "gcp.pools.a100.zones: are 2, with compact_placement"),
    ("gcp.pools.a100", {"kind": "tpu", "machine_type": "ct5p-hightpu-4t", "topology": "2x2x2"},
     "gcp.pools.a100.zones: are 2, and topology 2x2x2 is one slice"),
    ("gcp.accounts.nodes", {"kind": "existing", "email": "1-compute@developer.gserviceaccount.com"},
     "gcp.accounts.nodes.email: is 1-compute@developer.gserviceaccount.com, a default account"),
    ("gcp.accounts.nodes", {"kind": "create", "roles": ["roles/editor"]},
     "gcp.accounts.nodes.roles[0]: is roles/editor, of the whole project"),
    ("gcp.accounts.workloads.training.roles", ["roles/owner"],
     "gcp.accounts.workloads.training.roles[0]: is roles/owner"),
    ("gcp.accounts.workloads.evaluation", {"namespace": "training", "service_account": "trainer"},
     "gcp.accounts.workloads.evaluation.service_account: is training/trainer, which training is already"),
    (f"gcp.accounts.workloads.{'a' * 23}", {"namespace": "a", "service_account": "b"},
     f"gcp.accounts.workloads.{'a' * 23}: has 23 characters"),
    ("gcp.workloads", {"namespaces": {"jobs": {"namespace": "jobs", "account": "trainin"}}},
     "gcp.workloads.namespaces.jobs.account: no 'trainin'; nearest: training"),
    ("gcp.workloads", QUEUED, "gcp.workloads.queueing.local_queues.jobs.queue: no 'trainin'; nearest: training"),
    ("gcp.workloads", {"verify": {}}, "gcp.workloads.namespaces: have none for the jobs of verify; add one"),
    ("labels", {"cost:centre": "1", "cost-centre": "2"}, 'labels: "cost-centre" and "cost:centre" are both cost-c'),
]  # fmt: skip


@pytest.mark.parametrize("path, value, line", WRONG, ids=[f"{path}={value}"[:60] for path, value, _ in WRONG])
def test_one_fault_is_one_line(path: str, value: Any, line: str) -> None:
    found = faults(put(path, value))
    assert [text for text in found if text.startswith(f"environment.{line}")], found
    assert all("\n" not in text for text in found)


def told(path: str, value: Any) -> list[str]:
    return [str(fault) for fault in warnings(load_environment(put(path, value)))]


@pytest.mark.parametrize(
    "path, value, line",
    [
        ("labels", {"Team": "ML"}, 'labels: "Team: ML" is "team: ml" on Google Cloud'),
        (
            "gcp.cluster.authorized_networks",
            None,
            "gcp.cluster.authorized_networks: is absent, and the endpoint is pub",
        ),
        ("gcp.cluster.location", "us-central1-f", "gcp.cluster.location: is us-central1-f, a zone"),
        ("gcp.cluster.channel", "RAPID", "gcp.cluster.channel: is RAPID"),
        (
            "gcp.network.subnets.us-central1.pods",
            "10.64.0.0/20",
            "gcp.network.subnets.us-central1.pods: is 10.64.0.0/20",
        ),
        ("gcp.network.subnets.us-central1.nodes", "10.60.0.0/29", "gcp.pools: may come to 7 nodes, and the range for"),
        ("gcp.pools.system.min_nodes", 0, "gcp.pools: keep no node without an accelerator"),
        ("gcp.cluster.node_locations", ["us-central1-a", "us-central1-d"], "gcp.pools.a100.zones[1]: is us-central1-d"),
        (
            "gcp.pools.a100",
            {**A100, "capacity": "reservation", "reservation": {"name": "training"}},
            "gcp.pools.a100.zones: are 2, and a reservation is in one",
        ),
    ],
)
def test_what_is_likely_to_go_wrong_is_said(path: str, value: Any, line: str) -> None:
    found = told(path, value)
    assert [text for text in found if text.startswith(f"environment.{line}")], found


@pytest.mark.parametrize(
    "more",
    [
        {"min_nodes": 2, "initial_nodes": 1},
        {"initial_nodes": 2},
        {"limits": "per-zone", "min_nodes": 1, "initial_nodes": 4},
    ],
)
def test_a_pool_begins_with_its_initial_nodes_in_each_zone_of_the_cluster(more: dict[str, Any]) -> None:
    assert told("gcp.pools.a100", {**A100, **more}) == []


def test_labels_are_googles_concern_alone() -> None:
    without = {"owner": "ml", "labels": {"Team": "ML"}}
    assert warnings(load_environment(without)) == []


@pytest.mark.parametrize(
    "section",
    [
        {"network": ENVIRONMENT["gcp"]["network"]},
        {"network": EXISTING, "cluster": {"kind": "create", "location": "us-central1"}},
        {"network": {"kind": "stack", "stack": "o/p/network"}, "cluster": ENVIRONMENT["gcp"]["cluster"]},
        {
            "cluster": {"kind": "stack", "stack": "o/p/cluster"},
            "pools": {"system": ENVIRONMENT["gcp"]["pools"]["system"]},
        },
        {"cluster": THERE, "pools": SYSTEM},
        {"accounts": ENVIRONMENT["gcp"]["accounts"]},
    ],
    ids=["network", "cluster-on-existing", "cluster-on-stack", "pools-in-stack", "pools-in-existing", "accounts"],
)
def test_a_stack_may_be_one_layer(section: dict[str, Any]) -> None:
    loaded = load_environment({"owner": "ml", "gcp": {"project": PROJECT, "region": "us-central1", **section}})
    assert loaded.gcp is not None


def test_a_section_that_makes_nothing_is_refused() -> None:
    (fault,) = faults({"owner": "ml", "gcp": {"project": PROJECT, "region": "us-central1"}})
    assert fault.startswith("environment.gcp.network: is missing, and cluster and accounts.workloads too")


WORKLOADS: dict[str, Any] = {
    "releases": [{"release": "kueue", "sha256": "0" * 64}, {"release": "jobset", "sha256": "0" * 64}],
    "namespaces": {"training": {"namespace": "training"}},
    "queueing": {"queues": {"l4": {"pools": [{"pool": "l4"}]}}, "local_queues": {}},
}


@pytest.mark.parametrize(
    "targets, said",
    [
        ({}, True),
        ({"it": {"namespace": "training", "pools": ["l4"]}}, True),
        ({"it": {"namespace": "training"}}, False),
    ],
)
def test_a_pool_with_accelerators_that_no_queue_and_no_target_has_is_warned_of(
    targets: dict[str, Any], said: bool
) -> None:
    pools = {"l4": {"kind": "gpu", "machine_type": "g2-standard-4", "max_nodes": 2}, "a100": A100, **SYSTEM}
    found = told("gcp", {**ENVIRONMENT["gcp"], "pools": pools, "workloads": {**WORKLOADS, "targets": targets}})
    line = "environment.gcp.pools.a100: is in no queue and no target"
    assert [text.startswith(line) for text in found if "in no queue" in text] == [True] * said, found
