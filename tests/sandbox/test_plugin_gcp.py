"""The life of every type of the gcp stand-in, through the real engine."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.plugins.gcp.plugin import KINDS, GcpPlugin
from sandbox.plugins.server import ProviderError
from tests.support.engine import Engine
from tests.support.google_fake import COMPUTE, CONTAINER, Fake, P, engine_on
from tests.support.soak import soak_only

pytest_plugins = ["tests.support.google_fake"]
pytestmark = pytest.mark.engine
PROGRAM = (Path(__file__).with_name("programs") / "google.py").read_text()
CONFIG = {"gcp:project": "accel-sandbox", "gcp:region": "us-central1", "gcp:defaultLabels": json.dumps({"team": "ml"})}
ELSEWHERE = (
    *("gcp:tpu/", "gcp:compute/instance", "gcp:compute/regionInstance", "gcp:compute/attachedDisk"),
    *("gcp:compute/futureReservation", "gcp:compute/regionCommitment"),
    *("gcp:pubsub/", "gcp:firestore/", "gcp:vertex/", "gcp:artifactregistry/repository:"),
    *("gcp:billing/", "gcp:cloudfunctionsv2/", "gcp:cloudrunv2/", "gcp:monitoring/notificationChannel"),
    "gcp:cloudscheduler/",
)  # types with a test of their own
HEAD = "import pulumi\nimport pulumi_gcp as gcp\n"


@pytest.fixture
def engine(tmp_path: Path, fake: Fake, provider: dict[str, str]) -> Iterator[Engine]:
    yield from engine_on(tmp_path, fake, provider, CONFIG)


def left(fake: Fake) -> list[str]:
    """Whatever there is that a test could have made."""
    kinds = ("global/networks", "global/firewalls", "global/addresses", *(
        f"regions/-/{kind}" for kind in ("subnetworks", "routers", "addresses", "resourcePolicies")
    ), "zones/-/reservations", "zones/-/disks", "zones/-/instanceGroupManagers")  # fmt: skip
    found = [item["name"] for kind in kinds for item in fake.call("GET", f"{COMPUTE}/{kind}")["items"]]
    found += [item["name"] for item in fake.call("GET", f"{CONTAINER}/-/clusters")["clusters"]]
    accounts = fake.call("GET", f"iam.googleapis.com/v1/{P}/serviceAccounts")["accounts"]
    found += [item["email"] for item in accounts]
    buckets = fake.call("GET", "storage.googleapis.com/storage/v1/b", project="accel-sandbox")["items"]
    found += [item["name"] for item in buckets]
    found += [i["name"] for i in fake.call("GET", f"file.googleapis.com/v1/{P}/locations/-/instances")["instances"]]
    policy = fake.call("POST", f"cloudresourcemanager.googleapis.com/v1/{P}:getIamPolicy", {})
    return found + [binding["role"] for binding in policy.get("bindings", [])]


def test_every_type_from_its_creation_to_its_end(engine: Engine, fake: Fake) -> None:
    images = f"artifactregistry.googleapis.com/v1/{P}/locations/us/repositories"
    fake.call("POST", images, {"format": "DOCKER"}, repositoryId="images")
    secrets = f"secretmanager.googleapis.com/v1/{P}/secrets"
    fake.call("POST", secrets, {"replication": {"automatic": {}}}, secretId="token")
    before = left(fake)
    planned = engine.write(PROGRAM).preview()
    assert set(planned.ops()) == {"create"} and left(fake) == before
    made = engine.up()
    assert made.ops() == planned.ops()
    count = made.ops()["create"]
    states = {r["urn"].rpartition("::")[2]: r for r in engine.export()}
    assert {r["type"] for r in states.values()} >= {kind for kind in KINDS if not kind.startswith(ELSEWHERE)}
    assert made.outputs["project"] == "210020003000" and made.outputs["client"] == "accel-sandbox"
    assert made.outputs["endpoint"] == "192.0.2.1"
    engine.stays(count)

    assert states["net"]["id"].startswith(f"{P}/global/networks/net-")
    assert states["ml"]["id"] == f"{P}/locations/us-central1/clusters/ml"
    assert states["gpus"]["id"].startswith(f"{P}/locations/us-central1/clusters/ml/nodePools/gpus-")
    assert "/instanceGroups/gke-ml-gpus-" in made.outputs["groups"][0]
    assert states["nodes"]["outputs"]["member"] == "serviceAccount:ml-nodes@accel-sandbox.iam.gserviceaccount.com"
    assert states["nat"]["id"].startswith("accel-sandbox/us-central1/out-")
    labels = fake.call("GET", f"{CONTAINER}/us-central1/clusters/ml")["resourceLabels"]
    assert labels == {"goog-pulumi-provisioned": "true", "team": "ml", "stage": "a"}
    pools = {p["name"][:4]: p for p in fake.call("GET", f"{CONTAINER}/us-central1/clusters/ml/nodePools")["nodePools"]}
    assert pools.keys() == {"cpus", "gpus", "queu"}, "the default pool is gone"
    gpus = pools["gpus"]["config"]
    assert gpus["accelerators"] == [{
        "acceleratorType": "nvidia-l4", "acceleratorCount": "1",
        "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"},
        "gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": "2"},
    }]  # fmt: skip
    assert pools["gpus"]["autoscaling"]["enabled"] and gpus["gcfsConfig"] == {"enabled": True}
    assert pools["queu"]["queuedProvisioning"] == {"enabled": True}

    engine.write(PROGRAM.replace("VERSION = 1", "VERSION = 2"))
    planned = engine.up()
    replaced = {"moved", "compact", "smaller", "renamed", "metrics", "queued"}
    assert {step.name for step in planned.steps if step.op == "replace"} == replaced
    assert planned.step("queued", "replace").replaces == ("nodeConfig",)
    assert planned.step("sub", "update").diffs == ("ipCidrRange", "privateIpGoogleAccess")
    same = {step.name for step in planned.steps if step.op == "same" and ":providers:" not in step.type}
    assert same == {"out", "logs", "sometimes", "identity", "reads", "images", "token", "release"}
    engine.stays(count)
    found = fake.call("GET", f"{CONTAINER}/us-central1/clusters/ml")
    assert found["releaseChannel"] == {"channel": "RAPID"} and found["resourceLabels"]["stage"] == "b"
    assert found["maintenancePolicy"]["window"]["recurringWindow"]["window"]["endTime"] == "2026-01-03T08:00:00Z"
    (data,) = fake.call("GET", "storage.googleapis.com/storage/v1/b", project="accel-sandbox")["items"]
    assert data["labels"] == {"team": "ml", "stage": "b", "goog-pulumi-provisioned": "true"}
    assert data["lifecycle"]["rule"][0]["condition"] == {"age": 60, "matchesPrefix": ["tmp/"]}
    pools = {p["name"][:4]: p for p in found["nodePools"]}
    assert pools["cpus"]["config"]["machineType"] == "e2-standard-8" and pools["gpus"]["config"]["diskSizeGb"] == 200

    assert engine.destroy().ops()["delete"] == count
    assert left(fake) == before


@soak_only
def test_what_others_change_is_seen_and_put_back(engine: Engine, fake: Fake) -> None:
    program = f"""{HEAD}
net = gcp.compute.Network("net", auto_create_subnetworks=False)
sub = gcp.compute.Subnetwork("sub", network=net.id, ip_cidr_range="10.0.0.0/20", private_ip_google_access=True)
ml = gcp.container.Cluster("ml", name="ml", location="us-central1-a", network=net.id, subnetwork=sub.id,
    initial_node_count=1, remove_default_node_pool=True, deletion_protection=False, resource_labels={{"a": "b"}})
pool = gcp.container.NodePool("pool", name="pool", cluster=ml.id, node_count=1,
    node_config=gcp.container.NodePoolNodeConfigArgs(machine_type="e2-standard-4", labels={{"x": "y"}}))
account = gcp.serviceaccount.Account("nodes", account_id="ml-nodes")
gcp.projects.IAMMember("logs", project="accel-sandbox", role="roles/logging.logWriter", member=account.member)
pulumi.export("sub", sub.name)
"""
    sub = engine.write(program).up().outputs["sub"]
    at = f"{CONTAINER}/us-central1-a/clusters/ml"
    fake.done("POST", f"{COMPUTE}/regions/us-central1/subnetworks/{sub}/setPrivateIpGoogleAccess",
              {"privateIpGoogleAccess": False})  # fmt: skip
    mark = fake.call("GET", at)["labelFingerprint"]
    fake.done("POST", f"{at}:setResourceLabels", {"resourceLabels": {"a": "c"}, "labelFingerprint": mark})
    fake.done("POST", f"{at}/nodePools/pool:setSize", {"nodeCount": 3})
    fake.call("POST", f"cloudresourcemanager.googleapis.com/v1/{P}:setIamPolicy", {"policy": {"bindings": []}})
    seen = engine.refresh()
    drifted = {step.name: step.op for step in seen.steps if step.op in ("update", "delete")}
    assert drifted == {"sub": "update", "ml": "update", "pool": "update", "logs": "delete"}
    back = engine.up()
    assert {step.name for step in back.steps if step.op == "update"} == {"sub", "ml", "pool"}
    back.step("logs", "create")
    assert fake.call("GET", at)["resourceLabels"]["a"] == "b"
    assert set(engine.up("--refresh").ops()) == {"same"}


@soak_only
def test_a_protected_cluster_is_not_deleted(engine: Engine, fake: Fake) -> None:
    text = f"""{HEAD}
net = gcp.compute.Network("net")
gcp.container.Cluster("ml", name="ml", location="us-central1-a", network=net.name, initial_node_count=1KEPT)
"""
    engine.write(text.replace("KEPT", "")).up()
    refused = engine.destroy(check=False)
    said = "Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed"
    assert refused.exit_code and any(said in line for line in refused.diagnostics)
    assert fake.call("GET", f"{CONTAINER}/us-central1-a/clusters/ml")["status"] == "RUNNING"
    changed = engine.write(text.replace("KEPT", ", deletion_protection=False")).up()
    assert changed.step("ml", "update").diffs == ("deletionProtection",)
    engine.destroy()


@soak_only
def test_a_pool_without_stock_is_kept_and_made_again(engine: Engine, fake: Fake) -> None:
    engine.write(f"""{HEAD}
net = gcp.compute.Network("net")
ml = gcp.container.Cluster("ml", name="ml", location="us-central1-a", network=net.name, initial_node_count=1,
    deletion_protection=False)
gcp.container.NodePool("gpus", name="gpus", cluster=ml.id, initial_node_count=1,
    node_config=gcp.container.NodePoolNodeConfigArgs(machine_type="g2-standard-4"))
""")
    fake.fault(stockout=["g2-standard-4"])
    failed = engine.up(check=False)
    assert any("does not have enough resources available" in line for line in failed.diagnostics), failed.text
    assert "gpus" in {r["urn"].rpartition("::")[2] for r in engine.export()}
    fake.well()
    engine.refresh()
    assert engine.up().exit_code == 0
    found = fake.call("GET", f"{CONTAINER}/us-central1-a/clusters/ml/nodePools/gpus")
    assert found["config"]["machineType"] == "g2-standard-4"


REFUSED = {
    'gcp.compute.Network("a", name="Bad_Name")': "Must be a match of regex",
    'gcp.compute.ResourcePolicy("d", group_placement_policy={"maxDistance": 2})': (
        "property groupPlacementPolicy.maxDistance is not mapped to ResourcePolicyGroupPlacementPolicy"
    ),
    'gcp.compute.Router("e", network="nowhere", region="us-central1")': (
        "googleapi: Error 404: The resource 'projects/accel-sandbox/global/networks/nowhere' was not found, notFound"
    ),
    'gcp.projects.IAMMember("f", project="another", role="roles/viewer", member="user:a@b.c")': (
        "googleapi: Error 403: The caller does not have permission, forbidden"
    ),
}


def test_what_is_refused_says_why(engine: Engine) -> None:
    refused = engine.write(HEAD + "".join(f"{line}\n" for line in REFUSED)).up("--continue-on-error", check=False)
    missing = [text for text in REFUSED.values() if not any(text in said for said in refused.diagnostics)]
    assert refused.exit_code and not missing, refused.diagnostics


@pytest.mark.parametrize(
    "token, inputs, said",
    [
        ("gcp:compute/image:Image", {}, "the sandbox's gcp provider has no resource type gcp:compute/image:Image"),
        ("gcp:serviceaccount/account:Account", {"accountId": "ab"}, '"accountId" ("ab") doesn\'t match regexp'),
        ("gcp:compute/disk:Disk", {"size": 10}, "zone: required field is not set"),
    ],
)
def test_what_is_refused_before_anything_is_made(token: str, inputs: dict[str, Any], said: str) -> None:
    plugin = GcpPlugin("http://127.0.0.1:9", Path("/nowhere"))
    with pytest.raises(ProviderError) as refused:
        plugin.check(token, "x", {}, inputs, {"project": "accel-sandbox"}, "0123456")
    assert said in str(refused.value)


def test_names_are_made_up_within_their_limits() -> None:
    plugin, config = GcpPlugin("http://127.0.0.1:9", Path("/nowhere")), {"project": "p", "region": "r"}
    long = "A-very-long-name-of-a-resource-that-has-far-too-many-letters-for-any-of-these-kinds"
    for kind, prop, limit in (("container/nodePool:NodePool", "name", 40), ("compute/network:Network", "name", 63),
                              ("serviceaccount/account:Account", "accountId", 30)):  # fmt: skip
        made = plugin.check(f"gcp:{kind}", long, {}, {"cluster": "c"}, config, "0123456789")
        assert len(made[prop]) == limit and made[prop].endswith("0123456") and made[prop].islower()
        again = plugin.check(f"gcp:{kind}", long, made, {"cluster": "c"}, config, "9876543210")
        assert again[prop] == made[prop], "a name that was made up stays"


def test_settings_that_are_not_known_are_named() -> None:
    plugin = GcpPlugin("http://127.0.0.1:9", Path("/nowhere"))
    assert plugin.check_config({"project": "p", "userProjectOverride": "true"}) == []
    assert [name for name, _ in plugin.check_config({"projekt": "p"})] == ["projekt"]


@soak_only
def test_a_call_that_fails_for_a_moment_is_tried_again(engine: Engine, fake: Fake) -> None:
    fake.fault(method="compute.networks.*", code=503, count=2)
    engine.write(f'{HEAD}gcp.compute.Network("net")\n').up()
    fake.fault(method="compute.networks.delete", fails="INTERNAL_ERROR: planned by a test")
    failed = engine.destroy(check=False)
    assert any("Error waiting for Deleting Network: planned by a test" in line for line in failed.diagnostics)


def test_rows_name_what_there_is() -> None:
    """A row's API, schema and collection are of Google's documents, its properties of the SDK."""
    import pulumi_gcp

    for token, kind in KINDS.items():
        module, _, name = token.removeprefix("gcp:").partition("/")
        resource: Any = getattr(getattr(pulumi_gcp, module), name.partition(":")[2])
        known = {getattr(p.fget, "_pulumi_name", n) for n, p in vars(resource).items() if isinstance(p, property)}
        asked = kind.own | kind.replace | kind.computed | kind.outputs.keys() | kind.defaults.keys() | kind.unread
        assert {each.partition(".")[0] for each in asked} <= known, token
        if kind.schema:
            assert kind.document.schema(kind.schema)
