"""What jobs of Google Batch and Vertex AI stand on, as it is sent to the engine."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from accel.contract import allowances, claims
from components.base import Component
from components.gcp.batch_jobs import TAG
from components.gcp.image_repository import repository_id
from components.gcp.persistent_resource import PersistentPoolSpec
from tests.support import gcp, memory

from . import job_makers as makers

BUCKET, FIREWALL = "storage/bucket:Bucket", "compute/firewall:Firewall"
GRANT, IN_BUCKET = "projects/iAMMember:IAMMember", "storage/bucketIAMMember:BucketIAMMember"
READS = "artifactregistry/repositoryIamMember:RepositoryIamMember"
SERVICE, ROLE = "projects/service:Service", "roles/artifactregistry.reader"


def roles(seen: memory.Recorder) -> set[str]:
    return {one.inputs["role"] for one in seen.of(GRANT)}


def services(seen: memory.Recorder) -> set[str]:
    assert not any(one.inputs["disableOnDestroy"] for one in seen.of(SERVICE)), "others may use them"
    return {one.inputs["service"].removesuffix(".googleapis.com") for one in seen.of(SERVICE)}


def test_the_ground_of_google_batch() -> None:
    seen = gcp.run(lambda: makers.batch_jobs("batch", bucket={"keep_days": 30}))
    assert services(seen) == {"batch", "compute", "logging", "artifactregistry"}
    assert roles(seen) == {
        "roles/batch.agentReporter",
        "roles/logging.logWriter",
        "roles/monitoring.metricWriter",
        ROLE,
    }
    bucket = seen.one(BUCKET).inputs
    assert (bucket["location"], bucket["publicAccessPrevention"]) == ("us-central1", "enforced")
    assert bucket["lifecycleRules"][0]["condition"] == {"age": 30, "matchesPrefixes": ["accel-jobs/"]}
    firewall = seen.one(FIREWALL).inputs
    assert (firewall["sourceTags"], firewall["targetTags"]) == ([TAG], [TAG])
    assert "sourceRanges" not in firewall
    (member,) = {one.inputs["member"] for one in seen.of(IN_BUCKET)}
    assert member.startswith("serviceAccount:batch-")


def test_what_jobs_may_reach_besides() -> None:
    more = {"read_buckets": ["data"], "secrets": ["wandb"], "repositories": ["projects/p/locations/us/repositories/r"]}
    seen = gcp.run(lambda: makers.batch_jobs("batch", account=more))
    assert ROLE not in roles(seen), "of the whole project, where repositories are named"
    assert {one.inputs["bucket"] for one in seen.of(IN_BUCKET)} == {"data", "batch-0a1b2c3"}
    assert seen.one(READS).inputs["repository"] == "r"


def test_the_account_of_the_jobs_publishes() -> None:
    seen = gcp.run(lambda: makers.notifications("states", retention_s=600))
    topic = seen.one("pubsub/topic:Topic").inputs
    assert (topic["messageRetentionDuration"], services(seen)) == ("600s", {"pubsub"})
    grant = seen.one("pubsub/topicIAMMember:TopicIAMMember").inputs
    assert (grant["role"], grant["member"]) == ("roles/pubsub.publisher", f"serviceAccount:{makers.ACCOUNT}")


def test_a_template() -> None:
    def sent(**values: object) -> dict[str, Any]:
        seen = gcp.run(lambda: makers.batch_template("t", **values))
        return seen.one("compute/instanceTemplate:InstanceTemplate").inputs

    plain = sent()
    assert (plain["machineType"], plain["tags"]) == ("g2-standard-8", [TAG])
    assert "guestAccelerators" not in plain and "accessConfigs" not in plain["networkInterfaces"][0]
    assert plain["serviceAccount"]["email"] == makers.ACCOUNT
    spot = sent(machine_type="n1-standard-8", accelerator="t4", accelerator_count=2, capacity="spot")
    assert spot["guestAccelerators"] == [{"type": "nvidia-tesla-t4", "count": 2}]
    assert (spot["scheduling"]["provisioningModel"], spot["scheduling"]["automaticRestart"]) == ("SPOT", False)


def in_bucket(seen: memory.Recorder) -> dict[str, bool]:
    """The roles that jobs have in their bucket, and whether under a condition."""
    return {one.inputs["role"]: "condition" in one.inputs for one in seen.of(IN_BUCKET)}


def test_the_ground_of_vertex() -> None:
    seen = gcp.run(lambda: makers.vertex_jobs("vertex"))
    assert services(seen) == {"aiplatform", "compute", "logging", "artifactregistry"}
    assert "roles/aiplatform.user" in roles(seen)
    assert in_bucket(seen) == {"roles/storage.objectUser": True, "roles/storage.objectViewer": False}
    assert seen.one(BUCKET).inputs["location"] == "us-central1", "that of the jobs, always"
    with_board = gcp.run(lambda: makers.vertex_jobs("vertex", tensorboard=True))
    reads = {"roles/storage.objectViewer": False, "roles/storage.legacyBucketReader": False}
    assert in_bucket(with_board) == {"roles/storage.admin": True, **reads}


def test_images_of_another_project_are_pulled_by_googles_agent() -> None:
    there = ["projects/other/locations/us/repositories/r", f"projects/{gcp.PROJECT}/locations/us/repositories/own"]
    seen = gcp.run(lambda: makers.vertex_jobs("vertex", account={"repositories": there}))
    agents = [one.inputs for one in seen.of(READS) if "gcp-sa-aiplatform-cc" in one.inputs["member"]]
    assert [(one["project"], one["repository"]) for one in agents] == [("other", "r")]


@pytest.mark.parametrize(
    ("make", "values", "location", "collection", "expires"),
    [
        (makers.claim_database, {}, "us-central1", claims.COLLECTION, claims.EXPIRES),
        (makers.spend_ledger, {"location": "nam5"}, "nam5", allowances.HOLDS, allowances.EXPIRES),
    ],
)
def test_claims_and_what_is_settled_expire_and_the_database_stays(
    make: Callable[..., Component], values: dict[str, Any], location: str, collection: str, expires: str
) -> None:
    seen = gcp.run(lambda: make("records", **values))
    database = seen.one("firestore/database:Database").inputs
    assert (database["locationId"], database["type"]) == (location, "FIRESTORE_NATIVE")
    assert (database["deleteProtectionState"], database["deletionPolicy"]) == ("DELETE_PROTECTION_DISABLED", "DELETE")
    field = seen.one("firestore/field:Field").inputs
    assert (field["collection"], field["field"], field["ttlConfig"]) == (collection, expires, {})
    kept = gcp.run(lambda: make("records", protect=True)).one("firestore/database:Database")
    assert (kept.protect, kept.inputs["deleteProtectionState"]) == (True, "DELETE_PROTECTION_ENABLED")


def test_machines_that_are_kept() -> None:
    seen = gcp.run(lambda: makers.persistent_resource("kept", replicas=2))
    sent = seen.one("vertex/aiPersistentResource:AiPersistentResource").inputs
    (pool,) = sent["resourcePools"]
    assert pool["machineSpec"] == {
        "machineType": "g2-standard-24",
        "acceleratorType": "NVIDIA_L4",
        "acceleratorCount": 2,
    }
    assert (pool["id"], pool["replicaCount"]) == ("gpu", "2") and "autoscalingSpec" not in pool
    assert sent["resourceRuntimeSpec"]["serviceAccountSpec"]["enableCustomServiceAccount"] is True
    assert "network" not in sent and "pscInterfaceConfig" not in sent


@pytest.mark.parametrize(
    "pool, accelerators",
    [
        ({"machine_type": "n1-standard-8"}, None),
        ({"machine_type": "e2-standard-4"}, None),
        ({"machine_type": "n1-standard-8", "accelerator": "v100", "accelerator_count": 2}, ("NVIDIA_TESLA_V100", 2)),
        ({"machine_type": "a2-ultragpu-4g"}, ("NVIDIA_A100_80GB", 4)),
    ],
)
def test_the_gpus_of_a_kept_machine(pool: dict[str, Any], accelerators: tuple[str, int] | None) -> None:
    assert PersistentPoolSpec.model_validate(pool).accelerators == accelerators


@pytest.mark.parametrize(
    "pool, says",
    [
        ({"machine_type": "a3-highgpu-2g"}, "Spot or flex-start only"),
        ({"machine_type": "ct5lp-hightpu-4t"}, "a TPU"),
        ({"machine_type": "g2-standard-9"}, "g2-standard"),
        ({"accelerator": "nvidia-tesla-a100"}, "g2-standard-24"),
        ({"min_replicas": 1}, "max_replicas"),
        ({"min_replicas": 2, "max_replicas": 2, "replicas": 2}, "not more than min_replicas"),
        ({"min_replicas": 2, "max_replicas": 4}, "write 2 to 4"),
        ({"replicas": 0}, "greater than or equal to 1"),
    ],
)
def test_a_pool_that_cannot_be(pool: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        makers.kept_spec(**pool)
    assert says in str(refused.value)


def test_an_image_repository() -> None:
    def sent(**values: object) -> memory.Registration:
        return gcp.run(lambda: makers.repository("train", **values)).one("artifactregistry/repository:Repository")

    plain = sent().inputs
    assert (plain["repositoryId"], plain["format"], plain["location"]) == ("dev-train", "DOCKER", "us-central1")
    assert plain["cleanupPolicies"] == [
        {"id": "keep-recent", "action": "KEEP", "mostRecentVersions": {"keepCount": 50}},
        {"id": "delete-untagged", "action": "DELETE", "condition": {"tagState": "UNTAGGED", "olderThan": "1209600s"}},
    ]
    assert (plain["cleanupPolicyDryRun"], plain["dockerConfig"]) == (False, {"immutableTags": True})
    other = sent(repository_id="images", location="us", delete_days=90, dry_run=True, protect=True)
    assert (other.inputs["repositoryId"], other.inputs["location"], other.protect) == ("images", "us", True)
    assert (len(other.inputs["cleanupPolicies"]), other.inputs["cleanupPolicyDryRun"]) == (3, True)


def test_where_images_are_pushed() -> None:
    made: list[Any] = []
    seen = gcp.run(lambda: made.append(makers.repository("train", repository_id="images", location="us")))
    (outputs,) = [each for urn, each in seen.outputs.items() if "accel:gcp:ImageRepository" in urn]
    assert outputs["url"] == f"us-docker.pkg.dev/{gcp.PROJECT}/images"


@pytest.mark.parametrize("stack, id", [("dev", "dev-a"), ("Team_1.dev", "team-1-dev-a"), ("1", "r-1-a")])
def test_a_repository_has_a_name_that_google_takes(stack: str, id: str) -> None:
    assert repository_id(stack, "a") == id
    assert len(repository_id("s" * 80, "a")) == 63


@pytest.mark.parametrize(
    "make, part, needs",
    [
        (makers.notifications, "pubsub/topic:Topic", "pubsub"),
        (makers.claim_database, "firestore/database:Database", "firestore"),
        (makers.tensorboard, "vertex/aiTensorboard:AiTensorboard", "aiplatform"),
        (makers.persistent_resource, "vertex/aiPersistentResource:AiPersistentResource", "aiplatform"),
        (makers.repository, "artifactregistry/repository:Repository", "artifactregistry"),
    ],
)
def test_what_an_api_makes_waits_for_it(make: Callable[[str], Any], part: str, needs: str) -> None:
    made = gcp.run(lambda: make("one")).one(part)
    assert any(urn.endswith(f"::one-{needs}") for urn in made.dependencies)
