"""GKE in the sandbox's Google."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.google_fake import COMPUTE, CONTAINER, Fake, P
from tests.support.google_vms import create_network, delete_network

pytest_plugins = ["tests.support.google_fake"]
CLUSTERS = f"{CONTAINER}/us-central1-a/clusters"


@pytest.fixture
def network(fake: Fake) -> Iterator[Fake]:
    """A network and a subnetwork `gke`; whatever cluster a test leaves is deleted."""
    create_network(fake, "gke", "10.0.0.0/20")
    yield fake
    fake.well()
    (fake.home / "kubernetes.json").unlink(missing_ok=True)
    for cluster in fake.call("GET", f"{CONTAINER}/-/clusters")["clusters"]:
        fake.done("DELETE", f"container.googleapis.com/v1/{cluster['selfLink'].partition('/v1/')[2]}")
    delete_network(fake, "gke")


def cluster(**more: Any) -> dict[str, Any]:
    return {"cluster": {"name": "ml", "initialNodeCount": 1, "network": "gke", "subnetwork": "gke", **more}}


def pool(name: str = "gpus", kind: str = "g2-standard-4", **more: Any) -> dict[str, Any]:
    gpus = [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}]
    return {"nodePool": {"name": name, "config": {"machineType": kind, "accelerators": gpus}, **more}}


def test_a_cluster_from_its_creation_to_its_end(network: Fake) -> None:
    operation = network.slow(
        "POST", CLUSTERS, cluster(workloadIdentityConfig={"workloadPool": "accel-sandbox.svc.id.goog"})
    )
    assert (operation["operationType"], operation["status"]) == ("CREATE_CLUSTER", "RUNNING")
    assert network.call("GET", f"{CLUSTERS}/ml")["status"] == "PROVISIONING"
    network.end(operation)
    found = network.call("GET", f"{CLUSTERS}/ml")
    assert (found["status"], found["location"], found["locations"]) == ("RUNNING", "us-central1-a", ["us-central1-a"])
    assert found["endpoint"] == "192.0.2.1"
    assert found["networkConfig"]["subnetwork"] == f"{P}/regions/us-central1/subnetworks/gke"
    assert found["currentMasterVersion"].startswith("1.35.")
    (first,) = found["nodePools"]
    assert (first["name"], first["config"]["machineType"], first["status"]) == ("default-pool", "e2-medium", "RUNNING")
    listed = network.call("GET", "container.googleapis.com/v1/projects/-/locations/-/clusters")["clusters"]
    assert listed == [found]

    again = network.ask("POST", CLUSTERS, cluster()).json()["error"]
    assert (again["code"], again["message"]) == (409, f"Already exists: {P}/locations/us-central1-a/clusters/ml.")
    other = network.ask("POST", f"{CONTAINER}/us-east1/clusters", cluster(name="two")).json()["error"]
    assert other["message"] == "sandbox: there is one control plane, and cluster ml has it: delete that first"

    used = network.ask("DELETE", f"{COMPUTE}/regions/us-central1/subnetworks/gke").json()["error"]
    assert (used["code"], used["errors"][0]["reason"]) == (400, "resourceInUseByAnotherResource")
    assert used["message"] == (
        f"The subnetwork resource '{P}/regions/us-central1/subnetworks/gke' is already being used by "
        f"'{P}/locations/us-central1-a/clusters/ml'"
    )
    operation = network.slow("DELETE", f"{CLUSTERS}/ml")
    assert network.call("GET", f"{CLUSTERS}/ml")["status"] == "STOPPING"
    network.end(operation)
    gone = network.ask("GET", f"{CLUSTERS}/ml").json()["error"]
    assert (gone["code"], gone["message"]) == (404, f"Not found: {P}/locations/us-central1-a/clusters/ml.")
    assert network.call("GET", f"{COMPUTE}/zones/us-central1-a/instanceGroupManagers")["items"] == []


def test_the_endpoint_is_that_of_the_control_plane(network: Fake) -> None:
    told = {"endpoint": "127.0.0.1:1", "ca": "Q0E=", "url": "https://127.0.0.1:1", "token": "t", "pid": 1}
    (network.home / "kubernetes.json").write_text(json.dumps(told))
    network.done("POST", CLUSTERS, cluster())
    found = network.call("GET", f"{CLUSTERS}/ml")
    assert (found["endpoint"], found["masterAuth"]) == ("127.0.0.1:1", {"clusterCaCertificate": "Q0E="})


@pytest.mark.parametrize(
    "body, said",
    [
        (cluster(initialNodeCount=0), "Cluster.initial_node_count must be greater than zero."),
        (cluster(network="none"), f"Not found: {P}/global/networks/none."),
        (cluster(initialClusterVersion="1.2"), 'Master version "1.2" is unsupported.'),
        (cluster(nodePools=[{"nme": "x"}]),
         "Invalid JSON payload received. Unknown name \"nme\" at 'cluster.node_pools[0]': Cannot find field."),
    ],
)  # fmt: skip
def test_clusters_that_gke_refuses(network: Fake, body: dict[str, Any], said: str) -> None:
    answer = network.ask("POST", CLUSTERS, body)
    assert answer.status_code in (400, 404) and answer.json()["error"]["message"] == said


def test_a_pool_from_its_creation_to_its_end(network: Fake) -> None:
    network.done("POST", CLUSTERS, cluster())
    pools = f"{CLUSTERS}/ml/nodePools"
    limits = {"enabled": True, "minNodeCount": 0, "maxNodeCount": 4}
    network.done("POST", pools, pool(initialNodeCount=2, autoscaling=limits))
    found = network.call("GET", f"{pools}/gpus")
    assert (found["status"], found["initialNodeCount"], found["autoscaling"]) == ("RUNNING", 2, limits)
    assert found["config"]["diskType"] == "pd-balanced" and found["config"]["serviceAccount"] == "default"
    (group,) = found["instanceGroupUrls"]
    manager = f"compute.googleapis.com/compute/v1/{group.partition('/compute/v1/')[2]}"
    assert network.call("GET", manager)["targetSize"] == 2
    network.done("POST", f"{pools}/gpus:setSize", {"nodeCount": 3})
    assert network.call("GET", manager)["targetSize"] == 3
    network.done("POST", f"{manager}/resize", size="1")
    assert network.call("GET", manager)["targetSize"] == 1
    assert network.call("GET", f"{pools}/gpus")["initialNodeCount"] == 2

    network.done("PUT", f"{pools}/gpus", {"labels": {"labels": {"a": "b"}}})
    network.done("PUT", f"{pools}/gpus", {"taints": {"taints": [{"key": "k", "value": "v", "effect": "NO_SCHEDULE"}]}})
    network.done("POST", f"{pools}/gpus:setAutoscaling", {"autoscaling": {"enabled": False}})
    found = network.call("GET", f"{pools}/gpus")
    assert (found["config"]["labels"], found["autoscaling"]) == ({"a": "b"}, {"enabled": False})
    assert found["config"]["taints"][0]["key"] == "k"
    assert network.ask("POST", pools, pool()).json()["error"]["message"].startswith("Already exists: ")
    network.done("DELETE", f"{pools}/gpus")
    assert network.ask("GET", manager).status_code == 404
    assert [each["name"] for each in network.call("GET", pools)["nodePools"]] == ["default-pool"]


@pytest.mark.parametrize(
    "zone, kind, accelerator, count, said",
    [
        ("us-central1-a", "n1-standard-4", "nvidia-tesla-k80", 1,
         'Accelerator type "nvidia-tesla-k80" does not exist in zone us-central1-a.'),
        ("us-central1-d", "n1-standard-4", "nvidia-tesla-t4", 1,
         'Accelerator type "nvidia-tesla-t4" does not exist in zone us-central1-d.'),
        ("us-central1-a", "", "nvidia-l4", 1,
         "Cannot use default machine type (e2-medium) with GPUs; choose a different machine type."),
        ("us-central1-a", "e2-standard-4", "nvidia-tesla-t4", 1, "[nvidia-tesla-t4, e2-standard-4] features are not"),
        ("us-central1-a", "n1-standard-4", "nvidia-l4", 1, "[nvidia-l4, n1-standard-4] features are not compatible"),
        ("us-central1-a", "n1-standard-4", "nvidia-tesla-t4", 3, "[nvidia-tesla-t4, n1-standard-4] features are not"),
        ("us-central1-a", "n1-standard-96", "nvidia-tesla-t4", 1, "[nvidia-tesla-t4, n1-standard-96] features are"),
        ("us-central1-a", "g2-standard-4", "nvidia-l4", 2, "[nvidia-l4, g2-standard-4] features are not compatible"),
    ],
)  # fmt: skip
def test_pools_that_gke_refuses(network: Fake, zone: str, kind: str, accelerator: str, count: int, said: str) -> None:
    network.done("POST", CLUSTERS, cluster())
    config = {"machineType": kind, "accelerators": [{"acceleratorType": accelerator, "acceleratorCount": count}]}
    body = {"name": "p", "config": config, "locations": [zone]}
    answer = network.ask("POST", f"{CLUSTERS}/ml/nodePools", {"nodePool": body})
    assert answer.status_code == 400 and answer.json()["error"]["message"].startswith(said), answer.text


@pytest.mark.parametrize(
    "kind, accelerator, count",
    [
        ("n1-standard-8", "nvidia-tesla-t4", 2),
        ("n1-standard-96", "nvidia-tesla-v100", 8),
        ("n1-highmem-2", "nvidia-tesla-p4", 1),
    ],
)
def test_gpus_are_attached_to_n1(network: Fake, kind: str, accelerator: str, count: int) -> None:
    network.done("POST", CLUSTERS, cluster())
    config = {"machineType": kind, "accelerators": [{"acceleratorType": accelerator, "acceleratorCount": count}]}
    network.done("POST", f"{CLUSTERS}/ml/nodePools", {"nodePool": {"name": "p", "config": config}})
    found = network.call("GET", f"{CLUSTERS}/ml/nodePools/p")
    assert found["status"] == "RUNNING" and found["config"]["accelerators"][0]["acceleratorType"] == accelerator


@pytest.mark.parametrize("out", ["g2-standard-4", "us-central1-a/g2-standard-4"])
def test_a_pool_without_stock_ends_in_an_error_and_stays(network: Fake, out: str) -> None:
    network.done("POST", CLUSTERS, cluster())
    pools = f"{CLUSTERS}/ml/nodePools"
    network.fault(stockout=[out])
    failed = network.done("POST", pools, pool(initialNodeCount=1))
    assert failed["nodepoolConditions"][0]["code"] == "GCE_STOCKOUT"
    assert "does not have enough resources available to fulfill request: us-central1-a" in failed["statusMessage"]
    found = network.call("GET", f"{pools}/gpus")
    assert (found["status"], found["conditions"][0]["code"]) == ("ERROR", "GCE_STOCKOUT")
    assert "error" not in network.done("POST", pools, pool("empty", initialNodeCount=0))
    network.fault(stockout=[])
    assert "error" not in network.done("POST", pools, pool("later", initialNodeCount=1))


def test_a_cluster_is_changed_by_one_field_a_request(network: Fake) -> None:
    network.done("POST", CLUSTERS, cluster())
    at = f"{CLUSTERS}/ml"
    two = {"desiredLoggingService": "none", "desiredMonitoringService": "none"}
    assert "exactly one field" in network.ask("PUT", at, {"update": two}).text
    network.done("PUT", at, {"update": {"desiredLoggingService": "none"}})
    network.done("PUT", at, {"update": {"desiredReleaseChannel": {"channel": "STABLE"}}})
    network.done("PUT", at, {"update": {"desiredMasterVersion": "1.36"}})
    stale = network.ask("POST", f"{at}:setResourceLabels", {"resourceLabels": {"a": "b"}, "labelFingerprint": "x"})
    assert "fingerprint mismatch" in stale.text
    mark = network.call("GET", at)["labelFingerprint"]
    network.done("POST", f"{at}:setResourceLabels", {"resourceLabels": {"a": "b"}, "labelFingerprint": mark})
    found = network.call("GET", at)
    assert (found["loggingService"], found["releaseChannel"]) == ("none", {"channel": "STABLE"})
    assert found["resourceLabels"] == {"a": "b"} and found["currentMasterVersion"].startswith("1.36.")


def test_versions_that_there_are(fake: Fake) -> None:
    config = fake.call("GET", f"{CONTAINER}/us-central1/serverConfig")
    assert config["defaultClusterVersion"] in config["validMasterVersions"]
    assert (
        fake.ask("GET", f"{CONTAINER}/mars/serverConfig").json()["error"]["message"]
        == 'Location "mars" does not exist.'
    )


def test_an_identity_pool_comes_with_a_cluster(network: Fake) -> None:
    accounts = f"iam.googleapis.com/v1/{P}/serviceAccounts"
    email = network.call("POST", accounts, {"accountId": "identity"})["email"]
    member = "serviceAccount:pool-of-test.svc.id.goog[jobs/default]"
    policy = {"policy": {"bindings": [{"role": "roles/iam.workloadIdentityUser", "members": [member]}]}}
    assert network.ask("POST", f"{accounts}/{email}:setIamPolicy", policy).status_code == 400
    network.done("POST", CLUSTERS, cluster(workloadIdentityConfig={"workloadPool": "pool-of-test.svc.id.goog"}))
    assert network.ask("POST", f"{accounts}/{email}:setIamPolicy", policy).status_code == 200
    network.call("DELETE", f"{accounts}/{email}")
