"""`stacks validate --online` against networks, clusters and accounts of a project, as the sandbox's Google has them."""

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from accel.rules.gcp.existing import ClusterFacts, cluster, controllers
from stacks.cli.main import stacks
from tests.support.google_fake import COMPUTE, CONTAINER, Fake, P, fake
from tests.support.project import KEY, environment

from .test_online_aws import rules

__all__ = ["fake"]  # the fixture
REGION = "us-central1"
NETWORK = f"{P}/global/networks/shared"
SUBNET = f"{P}/regions/{REGION}/subnetworks/nodes"
RANGES = [
    {"rangeName": "pods", "ipCidrRange": "10.64.0.0/14"},
    {"rangeName": "services", "ipCidrRange": "10.68.0.0/20"},
]

PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n").decode()

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def ground(fake: Fake) -> Fake:
    """A network with a subnet, and a cluster in it."""
    fake.done("POST", f"{COMPUTE}/global/networks", {"name": "shared", "autoCreateSubnetworks": False})
    body = {"name": "nodes", "network": NETWORK, "ipCidrRange": "10.60.0.0/22", "secondaryIpRanges": RANGES}
    fake.done("POST", f"{COMPUTE}/regions/{REGION}/subnetworks", body)
    made = {"name": "theirs", "initialNodeCount": 1, "network": NETWORK, "subnetwork": SUBNET}
    fake.done("POST", f"{CONTAINER}/{REGION}/clusters", {"cluster": made})
    return fake


@pytest.fixture
def validate(ground: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for api in ("COMPUTE", "CONTAINER", "IAM", "CLOUDRESOURCEMANAGER"):
        host = f"{api.lower()}.googleapis.com" + ("/compute/v1" if api == "COMPUTE" else "")
        monkeypatch.setenv(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}", f"{ground.url}/{host}/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", ground.token)

    def validate(section: dict[str, Any], *options: str) -> Result:
        values = environment("gke-dev", cloud="gcp")
        values["gcp"] = {"project": "accel-sandbox", "region": REGION, **section}
        (tmp_path / "Pulumi.it.yaml").write_text(yaml.safe_dump({"config": {KEY: values}}, sort_keys=False))
        monkeypatch.chdir(tmp_path)
        return CliRunner().invoke(stacks, ["validate", "it", "--online", *options])

    return validate


def network(**subnet: str) -> dict[str, Any]:
    """A network that exists, and a cluster that is to be made in it."""
    given = {"subnetwork": SUBNET, "pods_range": "pods", "services_range": "services"} | subnet
    made = {"kind": "create", "location": REGION, "node_locations": [f"{REGION}-a"]}
    system = {"kind": "cpu", "machine_type": "e2-standard-4", "min_nodes": 1, "max_nodes": 3}
    return {
        "network": {"kind": "existing", "network": NETWORK, "subnets": {REGION: given}},
        "cluster": made,
        "pools": {"system": system},
    }


def test_a_subnet_without_a_way_out(validate: Run) -> None:
    done = validate(network())
    assert done.exit_code == 2 and rules(done) == ["gcp.existing.egress"]
    assert "neither Private Google Access nor Cloud NAT" in done.stderr


def test_private_google_access_or_nat(ground: Fake, validate: Run) -> None:
    where = f"{COMPUTE}/regions/{REGION}"
    ground.done("POST", f"{where}/subnetworks/nodes/setPrivateIpGoogleAccess", {"privateIpGoogleAccess": True})
    done = validate(network())
    assert done.exit_code == 0 and "gcp.existing.egress-google-only" in done.stdout
    assert validate(network(), "--strict").exit_code == 2
    nat = {"name": "nat", "natIpAllocateOption": "AUTO_ONLY", "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS"}
    other = {"name": SUBNET.replace("nodes", "others"), "sourceIpRangesToNat": ["ALL_IP_RANGES"]}
    router = {"name": "router", "network": NETWORK, "nats": [nat | {"subnetworks": [other]}]}
    ground.done("POST", f"{where}/routers", router)
    assert "egress-google-only" in validate(network()).stdout  # it serves another subnet
    served = [nat | {"subnetworks": [other | {"name": SUBNET}]}]
    ground.done("PATCH", f"{where}/routers/router", router | {"nats": served})
    done = validate(network())
    assert (done.exit_code, done.stderr) == (0, "") and "egress" not in done.stdout
    assert "fits what exists (compute.networks.get, compute.subnetworks.get, compute.routers.list)" in done.stdout


@pytest.mark.parametrize(
    ("subnet", "rule", "text"),
    [
        ({"subnetwork": SUBNET.replace("nodes", "gone")}, "gcp.existing.missing", "which is not there"),
        ({"pods_range": "podz"}, "gcp.existing.subnet-ranges", 'is "podz", and the subnet has no such range: pods'),
        ({"services_range": "svc"}, "gcp.existing.subnet-ranges", 'is "svc"'),
    ],
)
def test_subnets_and_ranges_that_are_not_there(validate: Run, subnet: dict[str, str], rule: str, text: str) -> None:
    done = validate(network(**subnet))
    assert rule in rules(done) and text in done.stderr


def test_a_network_that_is_not_there(validate: Run) -> None:
    section = network()
    section["network"]["network"] = NETWORK.replace("shared", "gone")
    assert rules(validate(section)) == ["gcp.existing.missing"]


def existing(fake: Fake, **changes: str) -> dict[str, Any]:
    found = fake.call("GET", f"{CONTAINER}/{REGION}/clusters/theirs")
    given = {
        "kind": "existing",
        "name": "theirs",
        "location": REGION,
        "endpoint": found["endpoint"],
        "ca_certificate": found["masterAuth"]["clusterCaCertificate"] or PEM,
    }
    return {"cluster": given | changes}


def test_a_cluster_that_is_there(ground: Fake, validate: Run) -> None:
    done = validate(existing(ground))
    assert (done.exit_code, done.stderr) == (0, "") and "container.clusters.get" in done.stdout


@pytest.mark.parametrize(
    ("changes", "rule"),
    [({"name": "gone"}, "gcp.existing.missing"), ({"endpoint": "203.0.113.9"}, "gcp.existing.cluster-endpoint")],
)
def test_another_cluster(ground: Fake, validate: Run, changes: dict[str, str], rule: str) -> None:
    assert rules(validate(existing(ground, **changes))) == [rule]


def test_a_cluster_without_workload_identity(ground: Fake, validate: Run) -> None:
    section = existing(ground) | {"accounts": {"workloads": {"jobs": {"namespace": "jobs", "service_account": "jobs"}}}}
    done = validate(section)
    assert rules(done) == ["gcp.existing.cluster-addon"] and "--workload-pool" in done.stderr


def test_a_node_account_that_is_not_there(ground: Fake, validate: Run) -> None:
    email = "gke-nodes@accel-sandbox.iam.gserviceaccount.com"
    section = existing(ground) | {"accounts": {"nodes": {"kind": "existing", "email": email}}}
    assert rules(validate(section)) == ["gcp.existing.missing"]
    ground.call("POST", f"iam.googleapis.com/v1/{P}/serviceAccounts", {"accountId": "gke-nodes", "serviceAccount": {}})
    done = validate(section)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "gcp.existing.node-account" in done.stdout
    member = [f"serviceAccount:{email}"]
    policy = {"bindings": [{"role": "roles/container.defaultNodeServiceAccount", "members": member}]}
    ground.call("POST", f"cloudresourcemanager.googleapis.com/v1/{P}:setIamPolicy", {"policy": policy})
    assert "node-account" not in validate(section).stdout


WELL = ClusterFacts("RUNNING", "203.0.113.7", "QQ==", "1.33.5-gke.1201000", "p.svc.id.goog", frozenset(), None)
NEEDS: dict[str, Any] = {
    "endpoint": "203.0.113.7", "ca_certificate": "QQ==", "addons": {}, "flex": (), "workload_pool": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "needs", "rule"),
    [
        ({}, {}, None),
        ({"status": "ERROR"}, {}, "gcp.existing.cluster-state"),
        ({"version": "1.28.9-gke.1"}, {}, "gcp.existing.cluster-version"),
        ({"version": "1.31.5-gke.100"}, {"flex": ("gpu",)}, "gcp.existing.cluster-version"),
        ({"version": "1.32.2-gke.1652000"}, {"flex": ("gpu",)}, None),
        ({"version": "1.32.2-gke.1652000"}, {"flex": ("tpu",)}, "gcp.existing.cluster-version"),
        ({}, {"ca_certificate": "Qg=="}, "gcp.existing.cluster-endpoint"),
        ({}, {"endpoint": "https://203.0.113.7:443"}, None),
        ({}, {"addons": {"GcsFuseCsiDriver": "workloads.volumes.data"}}, "gcp.existing.cluster-addon"),
        ({"addons": frozenset({"GcsFuseCsiDriver"})}, {"addons": {"GcsFuseCsiDriver": "v"}}, None),
    ],
)
def test_clusters(facts: dict[str, Any], needs: dict[str, Any], rule: str | None) -> None:
    found = cluster(replace(WELL, **facts), **(NEEDS | needs))
    assert [each.rule for each in found] == ([rule] if rule else [])


def test_controllers_that_are_said_to_be_there() -> None:
    wanted = {"kueue.x-k8s.io": "releases[0].install", "jobset.x-k8s.io": "releases[1].install"}
    assert controllers(WELL, wanted) == []  # the API server may not be asked
    (found,) = controllers(replace(WELL, apis=frozenset({"apps", "jobset.x-k8s.io"})), wanted)
    assert (found.field, found.rule) == ("releases[0].install", "gcp.existing.cluster-api")
