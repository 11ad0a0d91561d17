"""What jobs on Google Batch and Vertex AI stand on, through the real engine: made, changed, replaced, gone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accel.contract import claims
from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.targets import read_one
from tests.support.engine import Engine, Result, Step
from tests.support.google_fake import COMPUTE, Fake, P, engine_on, still
from tests.support.soak import soak_only

pytest_plugins = ["tests.support.google_fake"]
pytestmark = pytest.mark.engine
REGION = "us-central1"
CONFIG = {"gcp:project": "accel-sandbox", "gcp:region": REGION}
VERTEX = f"aiplatform.googleapis.com/v1/{P}/locations/{REGION}"
IMAGES = f"artifactregistry.googleapis.com/v1/{P}/locations/us/repositories"
BUCKETS = "storage.googleapis.com/storage/v1/b"

BATCH = """
import pulumi
import pulumi_gcp as gcp
from components.gcp.batch_jobs import BatchJobs, BatchJobsArgs, BatchJobsSpec
from components.gcp.batch_template import BatchTemplate, BatchTemplateArgs, BatchTemplateSpec
from components.gcp.job_notifications import JobNotifications, JobNotificationsArgs, JobNotificationsSpec

network = gcp.compute.Network("net", auto_create_subnetworks=False)
subnet = gcp.compute.Subnetwork(
    "sub", network=network.id, region="us-central1", ip_cidr_range="10.0.0.0/20", private_ip_google_access=True
)
here = {"project": "accel-sandbox"}
ground = BatchJobs("batch", BatchJobsArgs(
    spec=BatchJobsSpec.model_validate(GROUND), region="us-central1", network=network.id, **here))
told = JobNotifications("states", JobNotificationsArgs(
    spec=JobNotificationsSpec.model_validate(TOPIC), publisher=ground.member, **here))
template = BatchTemplate("template", BatchTemplateArgs(
    spec=BatchTemplateSpec.model_validate(TEMPLATE), network=network.id, subnetwork=subnet.id,
    service_account=ground.service_account, **here))
pulumi.export("topic", told.topic)
pulumi.export("template", template.template)
pulumi.export("bucket", ground.bucket)
pulumi.export("account", ground.service_account)
"""

VERTEX_GROUND = """
import pulumi
from components.gcp.claim_database import ClaimDatabase, ClaimDatabaseArgs, ClaimDatabaseSpec
from components.gcp.image_repository import GcpImageRepositorySpec, ImageRepository, ImageRepositoryArgs
from components.gcp.persistent_resource import PersistentResource, PersistentResourceArgs, PersistentResourceSpec
from components.gcp.tensorboard import Tensorboard, TensorboardArgs, TensorboardSpec
from components.gcp.vertex_jobs import VertexJobs, VertexJobsArgs, VertexJobsSpec

here = {"project": "accel-sandbox", "region": "us-central1"}
ground = VertexJobs("vertex", VertexJobsArgs(spec=VertexJobsSpec.model_validate({}), tensorboard=True, **here))
claims = ClaimDatabase("claims", ClaimDatabaseArgs(spec=ClaimDatabaseSpec.model_validate(CLAIMS), **here))
board = Tensorboard("board", TensorboardArgs(spec=TensorboardSpec.model_validate(BOARD), **here))
kept = PersistentResource(
    "kept", PersistentResourceArgs(spec=PersistentResourceSpec.model_validate({"pools": {"gpu": POOL}}), **here))
images = ImageRepository(
    "images", ImageRepositoryArgs(spec=GcpImageRepositorySpec.model_validate(IMAGES), **here))
pulumi.export("database", claims.database)
pulumi.export("tensorboard", board.name)
pulumi.export("kept", kept.id)
pulumi.export("url", images.url)
pulumi.export("bucket", ground.bucket)
"""


def program(text: str, **values: object) -> str:
    return "".join(f"{name} = {value!r}\n" for name, value in values.items()) + text


@pytest.fixture
def engine(tmp_path: Path, fake: Fake, provider: dict[str, str]) -> Iterator[Engine]:
    yield from engine_on(tmp_path, fake, provider, CONFIG, "--run-program")


def step(result: Result, op: str, of: str) -> Step:
    """The step of the resource whose type ends so."""
    found = [each for each in result.steps if each.op == op and each.type.endswith(of)]
    assert found, [(each.op, each.type) for each in result.steps]
    return found[0]


def members(fake: Fake, role: str) -> list[str]:
    policy = fake.call("POST", f"cloudresourcemanager.googleapis.com/v1/{P}:getIamPolicy", {})
    return [member for each in policy.get("bindings", []) if each["role"] == role for member in each["members"]]


def test_the_ground_of_google_batch(engine: Engine, fake: Fake) -> None:
    given: dict[str, Any] = {
        "GROUND": {"bucket": {"force_delete": True}},
        "TOPIC": {},
        "TEMPLATE": {"zone": f"{REGION}-a", "machine_type": "g2-standard-8"},
    }
    made = engine.write(program(BATCH, **given)).up().outputs
    account = f"serviceAccount:{made['account']}"
    assert members(fake, "roles/batch.agentReporter") == members(fake, "roles/logging.logWriter") == [account]
    for service in ("batch", "compute", "pubsub"):
        found = fake.call("GET", f"serviceusage.googleapis.com/v1/{P}/services/{service}.googleapis.com")
        assert found["state"] == "ENABLED"
    topic = f"pubsub.googleapis.com/v1/{made['topic']}"
    assert fake.call("GET", topic)["name"] == made["topic"]
    (binding,) = fake.call("GET", f"{topic}:getIamPolicy")["bindings"]
    assert (binding["role"], binding["members"]) == ("roles/pubsub.publisher", [account])
    template = fake.call("GET", f"compute.googleapis.com/compute/v1/{made['template']}")["properties"]
    assert (template["machineType"], template["tags"]["items"]) == ("g2-standard-8", ["accel-batch"])
    assert template["serviceAccounts"][0]["email"] == made["account"]
    firewalls = fake.call("GET", f"{COMPUTE}/global/firewalls")["items"]
    (firewall,) = [each for each in firewalls if each["name"].startswith("batch-inside")]
    assert firewall["sourceTags"] == firewall["targetTags"] == ["accel-batch"]
    still(engine)

    given["TOPIC"] = {"retention_s": 3600}
    given["GROUND"] = {"bucket": {"force_delete": True, "keep_days": 5}}
    changed = engine.write(program(BATCH, **given)).up()
    assert step(changed, "update", ":Topic") and step(changed, "update", ":Bucket")
    assert fake.call("GET", topic)["messageRetentionDuration"] == "3600s"
    rules = fake.call("GET", f"{BUCKETS}/{made['bucket']}")["lifecycle"]["rule"]
    ages = {rule["action"]["type"]: rule["condition"]["age"] for rule in rules}
    assert ages == {"Delete": 5, "AbortIncompleteMultipartUpload": 7}
    still(engine)

    given["TEMPLATE"]["machine_type"] = "g2-standard-16"
    replaced = engine.write(program(BATCH, **given)).up()
    assert "machineType" in step(replaced, "replace", ":InstanceTemplate").replaces
    assert replaced.outputs["template"] != made["template"]
    still(engine)
    engine.destroy()
    assert fake.ask("GET", topic).status_code == 404
    assert members(fake, "roles/batch.agentReporter") == []
    assert fake.ask("GET", f"{BUCKETS}/{made['bucket']}").status_code == 404
    gone = f"compute.googleapis.com/compute/v1/{replaced.outputs['template']}"
    assert fake.ask("GET", gone).status_code == 404
    batch = fake.call("GET", f"serviceusage.googleapis.com/v1/{P}/services/batch.googleapis.com")
    assert batch["state"] == "ENABLED", "others may use it"


@soak_only
def test_the_ground_of_vertex(engine: Engine, fake: Fake) -> None:
    given: dict[str, Any] = {
        "CLAIMS": {},
        "BOARD": {},
        "POOL": {"machine_type": "g2-standard-8", "replicas": 1},
        "IMAGES": {"location": "us"},
    }
    made = engine.write(program(VERTEX_GROUND, **given)).up().outputs
    field = f"firestore.googleapis.com/v1/{made['database']}/collectionGroups/{claims.COLLECTION}/fields/expires"
    assert "ttlConfig" in fake.call("GET", field)
    kept = fake.call("GET", f"{VERTEX}/persistentResources/{made['kept']}")
    assert kept["resourcePools"][0]["machineSpec"]["acceleratorType"] == "NVIDIA_L4"
    board = f"aiplatform.googleapis.com/v1/{made['tensorboard']}"
    assert fake.call("GET", board)["displayName"] == "board"
    at, _, short = made["url"].rpartition("/")
    repository = fake.call("GET", f"{IMAGES}/{short}")
    assert at == "us-docker.pkg.dev/accel-sandbox"
    assert set(repository["cleanupPolicies"]) == {"keep-recent", "delete-untagged"}
    assert members(fake, "roles/aiplatform.user")
    still(engine)

    given |= {"BOARD": {"description": "runs"}, "IMAGES": {"location": "us", "dry_run": True, "delete_days": 30}}
    given["POOL"] = {"machine_type": "g2-standard-8", "replicas": 2}
    changed = engine.write(program(VERTEX_GROUND, **given)).up()
    for kind in (":AiTensorboard", ":AiPersistentResource", ":Repository"):
        assert step(changed, "update", kind)
    (pool,) = fake.call("GET", f"{VERTEX}/persistentResources/{made['kept']}")["resourcePools"]
    assert pool["replicaCount"] == "2"
    assert fake.call("GET", f"{IMAGES}/{short}")["cleanupPolicyDryRun"] is True
    still(engine)

    given["POOL"] = {"machine_type": "g2-standard-12", "replicas": 2}
    given["CLAIMS"] = {"location": "nam5"}
    replaced = engine.write(program(VERTEX_GROUND, **given)).up()
    assert step(replaced, "replace", ":AiPersistentResource") and step(replaced, "replace", ":Database")
    assert replaced.outputs["database"] != made["database"]
    still(engine)
    engine.destroy()
    database = f"firestore.googleapis.com/v1/{replaced.outputs['database']}"
    resource = f"{VERTEX}/persistentResources/{replaced.outputs['kept']}"
    for path in (database, resource, board, f"{IMAGES}/{short}", f"{BUCKETS}/{made['bucket']}"):
        assert fake.ask("GET", path).status_code == 404, path


SECTION = {
    "project": "accel-sandbox",
    "region": REGION,
    "network": {
        "kind": "create",
        "subnets": {REGION: {"nodes": "10.0.0.0/22", "pods": "10.4.0.0/14", "services": "10.8.0.0/20"}},
    },
    "batch": {
        "bucket": {"force_delete": True},
        "notifications": {},
        "template": {"zone": f"{REGION}-a", "machine_type": "g2-standard-8"},
        "targets": {"batch": {"zones": [f"{REGION}-a"], "template": True}},
    },
    "vertex": {"bucket": {"force_delete": True}, "targets": {"vertex": {}}},
}


@soak_only
def test_the_section_of_an_environment(engine: Engine, fake: Fake) -> None:
    given = {"owner": "ml", "gcp": SECTION}
    text = "from stacks.environment.config import load_environment\nfrom stacks.environment.deployment import deploy\n"
    engine.write(f"{text}deploy(load_environment({given!r}))\n")
    made = engine.up().outputs
    batch, vertex = read_one(made["targets"]["batch"]), read_one(made["targets"]["vertex"])
    assert isinstance(batch, GoogleBatchTarget) and isinstance(vertex, VertexTarget)
    for path in (batch.network, batch.subnetwork, batch.instance_template):
        assert fake.ask("GET", f"compute.googleapis.com/compute/v1/{path}").ok, path
    assert fake.ask("GET", f"pubsub.googleapis.com/v1/{batch.notifications}").ok
    assert fake.ask("GET", f"firestore.googleapis.com/v1/{vertex.claims}").ok
    for name, target in (("batch", batch), ("vertex", vertex)):
        assert made[f"{name}_targets"] == f"gs://{target.bucket}/accel-targets"
        at = f"{BUCKETS}/{target.bucket}/o/accel-targets%2F{name}.json"
        source = {"published": made[f"{name}_targets"]}
        assert {**fake.call("GET", at, alt="media"), **source} == made["targets"][name]
    still(engine)
    engine.destroy("--run-program")
    for target in (batch, vertex):
        assert fake.ask("GET", f"{BUCKETS}/{target.bucket}").status_code == 404
