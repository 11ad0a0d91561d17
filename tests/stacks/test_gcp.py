"""A gcp section as components and outputs, on the engine in memory."""

import json
from typing import Any

import pulumi
import pytest

from accel.contract.gke import GkeCluster, GkeTarget, GkeVolume
from accel.contract.network import GcpNetwork
from accel.contract.targets import read_one
from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy
from stacks.environment.gcp.cluster import Clusters, of_stack
from stacks.environment.gcp.config import StackCluster
from stacks.environment.gcp.network import subnet_of
from stacks.environment.gcp.outputs import GkeQueue, targets
from stacks.environment.gke.workloads import kubernetes_provider
from tests.support import gcp, memory

from .test_gcp_config import CA, ENVIRONMENT, EXISTING, PROJECT, SYSTEM, THERE, put

CLUSTER = "container/cluster:Cluster"
POOL = "container/nodePool:NodePool"
SERVICE = "projects/service:Service"


def ran(environment: dict[str, Any], *, preview: bool = False) -> memory.Recorder:
    loaded = load_environment(environment)
    return gcp.run(lambda: deploy(loaded), preview=preview)


def section(**parts: Any) -> dict[str, Any]:
    return {"owner": "ml", "gcp": {"project": PROJECT, "region": "us-central1", **parts}}


def test_a_section_exports_what_the_contract_promises() -> None:
    outputs = ran(ENVIRONMENT).exports
    assert set(outputs) == {"clusters", "gcp_network", "service_accounts"}
    network = GcpNetwork.model_validate(outputs["gcp_network"])
    assert (network.project, set(network.subnets)) == (PROJECT, {"us-central1"})
    cluster = GkeCluster.model_validate(outputs["clusters"]["cluster"])
    assert (cluster.name, cluster.location, cluster.endpoint) == ("cluster-0a1b2c3", "us-central1", "203.0.113.7")
    assert cluster.ca_certificate == CA, "public, so in the open"
    assert {key: pool.name for key, pool in cluster.pools.items()} == {
        "system": "system-0a1b2c3",
        "a100": "a100-0a1b2c3",
    }
    assert cluster.pools["a100"].zones == ["us-central1-a", "us-central1-c"], "those of the cluster"
    assert cluster.pools["a100"].labels["cloud.google.com/gke-nodepool"] == "a100-0a1b2c3"
    assert set(outputs["service_accounts"]) == {"training"}


def test_an_update_makes_what_the_preview_showed() -> None:
    def names(preview: bool) -> list[tuple[str, str]]:
        return sorted((one.type, one.name) for one in ran(ENVIRONMENT, preview=preview).registrations)

    assert names(preview=True) == names(preview=False)


def test_every_resource_is_made_by_the_explicit_provider() -> None:
    seen = ran(put("labels", {"Team": "ML Platform"}))
    providers = {one.name: one for one in seen.registrations if one.type == "pulumi:providers:gcp"}
    assert providers.keys() == {"gcp-us-central1", "gcp-us-central1-services"}
    provider = providers["gcp-us-central1"]
    assert (provider.inputs["project"], provider.inputs["region"]) == (PROJECT, "us-central1")
    labels = {"team": "ml-platform", "accel-owner": "ml-platform", "accel-project": "accel", "accel-stack": "dev"}
    assert json.loads(provider.inputs["defaultLabels"]) == labels
    for one in seen.registrations:
        if one.type.startswith("gcp:"):
            assert "gcp-us-central1" in one.provider, f"{one.urn} is left to the shell's project"
    # The provider's labels do not reach the machines of a pool.
    assert all(one.inputs["nodeConfig"]["resourceLabels"] == labels for one in seen.of(POOL))


def test_everything_waits_for_the_apis_it_needs() -> None:
    """By its provider, which a resource waits for, and a read too."""
    seen = ran(ENVIRONMENT)
    (services,) = [one.urn for one in seen.registrations if one.type == "accel:gcp:Services"]
    made = {one.name: one for one in seen.of(SERVICE) if one.parent == services}
    waits = {one.name: one.dependencies for one in seen.registrations if one.type == "pulumi:providers:gcp"}
    assert set(waits["gcp-us-central1"]) >= {one.urn for one in made.values()}
    for one in seen.registrations:
        if one.type.startswith("gcp:"):
            assert ("::gcp-us-central1-services::" in one.provider) == (one in made.values()), one.urn
    # The provider reads the project after it has enabled an API, by this one.
    first = made.pop("services-cloudresourcemanager")
    assert all(first.urn in one.dependencies for one in made.values())
    assert {one.inputs["service"].partition(".")[0] for one in made.values()} >= {"compute", "container", "iam"}


def test_cluster_and_pools_are_wired() -> None:
    seen = ran(ENVIRONMENT)
    cluster = seen.one(CLUSTER).inputs
    assert (cluster["network"], cluster["subnetwork"]) == ("network-id", "network-us-central1-id")
    nodes = "nodes-0a1b2c3@ml-dev-1234.iam.gserviceaccount.com"
    assert cluster["nodeConfig"]["serviceAccount"] == nodes
    for pool in seen.of(POOL):
        assert (pool.inputs["cluster"], pool.inputs["location"]) == ("cluster-0a1b2c3", "us-central1")
        assert pool.inputs["nodeConfig"]["serviceAccount"] == nodes
    zones = {one.name: one.inputs["nodeLocations"] for one in seen.of(POOL)}
    assert zones == {"system": ["us-central1-a"], "a100": ["us-central1-a", "us-central1-c"]}


def test_a_preview_does_not_replace_what_is_kept() -> None:
    """A cluster whose certificate is not known yet, or a network with a new subnet, is still the same: were its name
    unknown for that, a preview would show every pool replaced."""
    loaded = load_environment(ENVIRONMENT)
    seen = gcp.run(lambda: deploy(loaded), preview=True, kept={"name": "kept", "id": "kept"})
    assert all(pool.inputs["cluster"] == "kept" for pool in seen.of(POOL))
    assert all(pool.inputs["location"] == "us-central1" for pool in seen.of(POOL))


def test_a_cluster_on_a_network_that_is_there() -> None:
    seen = ran(put("gcp.network", EXISTING))
    assert not seen.of("compute/network:Network")
    cluster = seen.one(CLUSTER).inputs
    assert cluster["subnetwork"] == "projects/host-1234/regions/us-central1/subnetworks/gke"
    assert cluster["ipAllocationPolicy"]["clusterSecondaryRangeName"] == "gke-pods"
    assert seen.exports["gcp_network"]["project"] == "host-1234"


def test_a_network_alone_makes_no_account() -> None:
    seen = ran(section(network=ENVIRONMENT["gcp"]["network"]))
    assert set(seen.exports) == {"gcp_network"}
    assert not seen.of("serviceaccount/account:Account") and not seen.of(CLUSTER)


def test_one_stack_builds_on_another(monkeypatch: pytest.MonkeyPatch) -> None:
    ground = ran(ENVIRONMENT).exports
    monkeypatch.setitem(memory.STACKS, "o/accel/ground", {"gcp_network": ground["gcp_network"]})
    on_network = ran(put("gcp.network", {"kind": "stack", "stack": "o/accel/ground"}))
    assert on_network.one(CLUSTER).inputs["subnetwork"] == "network-us-central1-id"
    assert not on_network.of("compute/network:Network")

    monkeypatch.setitem(memory.STACKS, "o/accel/cluster", {"clusters": ground["clusters"]})
    pools = {"more": {"kind": "cpu", "max_nodes": 2, "zones": ["us-central1-a"]}}
    seen = ran(section(cluster={"kind": "stack", "stack": "o/accel/cluster"}, pools=pools))
    assert not seen.of(CLUSTER)
    assert seen.one(POOL).inputs["cluster"] == "cluster-0a1b2c3"
    assert set(seen.exports["clusters"]["cluster"]["pools"]) == {"system", "a100", "more"}


def test_another_stacks_newer_fields_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = ran(ENVIRONMENT).exports["clusters"]
    newer = {"cluster": {**clusters["cluster"], "schema": 2, "fleet": "x"}}
    monkeypatch.setitem(memory.STACKS, "o/accel/newer", {"clusters": newer})
    seen = ran(section(cluster={"kind": "stack", "stack": "o/accel/newer"}, pools=SYSTEM))
    assert seen.one(POOL).inputs["cluster"] == "cluster-0a1b2c3"


def test_what_the_other_stack_does_not_have() -> None:
    outputs = ran(ENVIRONMENT).exports
    clusters = Clusters.model_validate(outputs["clusters"]).root
    with pytest.raises(pulumi.RunError, match=r"stack o/p/s has no cluster 'clusters'; nearest: cluster"):
        of_stack(clusters, StackCluster(kind="stack", stack="o/p/s", key="clusters"))
    with pytest.raises(pulumi.RunError, match=r"gcp\.region: is us-east1, and the network has subnets in us-central1"):
        subnet_of(GcpNetwork.model_validate(outputs["gcp_network"]), "us-east1")


def test_pools_in_a_cluster_that_is_there() -> None:
    seen = ran(section(cluster=THERE, pools=SYSTEM))
    assert seen.one(POOL).inputs["cluster"] == "ml"
    promised = GkeCluster.model_validate(seen.exports["clusters"]["cluster"])
    assert (promised.name, promised.workload_pool) == ("ml", f"{PROJECT}.svc.id.goog")


def test_nodes_run_as_an_account_that_is_there() -> None:
    email = "mine@ml-dev-1234.iam.gserviceaccount.com"
    seen = ran(put("gcp.accounts.nodes", {"kind": "existing", "email": email}))
    assert all(one.inputs["nodeConfig"]["serviceAccount"] == email for one in [seen.one(CLUSTER), *seen.of(POOL)])
    assert [one.name for one in seen.of("serviceaccount/account:Account")] == ["training"]


def promised() -> GkeCluster:
    return GkeCluster.model_validate(ran(ENVIRONMENT).exports["clusters"]["cluster"])


def test_a_queue_becomes_a_target() -> None:
    cluster, seen = promised(), list[Any]()
    queue = GkeQueue(
        namespace="training",
        queue="gpu",
        priorities=["high"],
        service_account="trainer",
        jobset=True,
        pools=["a100"],
        volumes={"data": GkeVolume(claim="data", read_only=True)},
    )

    def program() -> None:
        known = pulumi.Output.from_input(cluster.name).apply(lambda _: cluster)
        targets(known, {"gpu": queue}, {})["gpu"].apply(seen.append)

    gcp.run(program)
    target = read_one(seen[0])
    assert isinstance(target, GkeTarget)
    assert (target.cluster, target.endpoint, target.namespace, target.queue) == (
        "cluster-0a1b2c3",
        "203.0.113.7",
        "training",
        "gpu",
    )
    assert set(target.pools) == {"a100"} and target.pools["a100"].gpus == 1
    assert target.volumes["data"].read_only and target.jobset


def test_the_clusters_provider_holds_no_secret() -> None:
    cluster = promised()
    seen = gcp.run(lambda: kubernetes_provider("main", pulumi.Output.from_input(cluster.name).apply(lambda _: cluster)))
    (provider,) = [one for one in seen.registrations if one.type == "pulumi:providers:kubernetes"]
    assert provider.inputs["clusterIdentifier"] == f"{PROJECT}/us-central1/cluster-0a1b2c3"
    config = json.loads(provider.inputs["kubeconfig"])
    assert config["clusters"][0]["cluster"] == {
        "server": "https://203.0.113.7",
        "certificate-authority-data": CA,
    }
    (user,) = config["users"]
    assert set(user["user"]) == {"exec"}
    assert user["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"
    (context,) = config["contexts"]
    assert config["current-context"] == context["name"]
    assert context["context"] == {"cluster": config["clusters"][0]["name"], "user": user["name"]}


def test_a_stack_without_google_runs_without_it() -> None:
    seen = gcp.run(lambda: deploy(load_environment({"owner": "ml"})))
    assert seen.registrations == []
