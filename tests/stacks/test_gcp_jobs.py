"""The `batch`, `vertex` and `images` parts of a section: what is refused, what is made, what is promised."""

import json
from typing import Any

import pytest

from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.targets import read_one
from stacks.environment.config import ConfigFaults, load_environment
from stacks.environment.deployment import deploy
from stacks.operations.cost.google import excluded_costs, machines
from tests.support import gcp, memory

SUBNET = {"nodes": "10.0.0.0/22", "pods": "10.4.0.0/14", "services": "10.8.0.0/20"}
NETWORK = {"kind": "create", "subnets": {"us-central1": SUBNET}}
RESERVATION = "projects/p/zones/us-central1-a/reservations/r"
TEMPLATE = {"zone": "us-central1-a", "machine_type": "g2-standard-8"}
ATTACHMENT = "projects/p/regions/us-central1/networkAttachments/a"


def environment(network: dict[str, Any] | None = NETWORK, **parts: Any) -> dict[str, Any]:
    return {
        "owner": "ml",
        "gcp": {"project": gcp.PROJECT, "region": "us-central1", "network": network, **parts},
    }


def ran(environment: dict[str, Any], *, preview: bool = False) -> memory.Recorder:
    loaded = load_environment(environment)
    return gcp.run(lambda: deploy(loaded), preview=preview)


def batch(**target: Any) -> dict[str, Any]:
    return {"batch": {"targets": {"b": target}}}


def vertex(**more: Any) -> dict[str, Any]:
    return {"vertex": {"targets": {"v": {}}, **more}}


@pytest.mark.parametrize(
    "parts, path, says",
    [
        ({"batch": {}, "network": None}, "gcp.network", "VMs of batch need one"),
        (batch(zones=["us-central1-a", "us-east1-b"]), "batch.targets.b.zones", "keep those of us-central1"),
        (batch(zones=["us-central1-a", "us-central1-a"]), "batch.targets.b.zones[1]", "again"),
        (batch(region="us-east1"), "batch.targets.b.region", "subnets in us-central1 only"),
        (batch(region="us-central1-a"), "batch.targets.b.region", "which is a zone"),
        (batch(machine_types=["g2-standard-9"]), "batch.targets.b.machine_types[0]", "g2-standard-8"),
        (batch(reservation="r"), "batch.targets.b.reservation", "projects/<project>/zones/<zone>"),
        (
            batch(reservation=RESERVATION, zones=["us-central1-b"]),
            "batch.targets.b.reservation",
            "name its zone",
        ),
        (batch(template=True), "batch.targets.b.template", "the section has none"),
        (
            {"batch": {"template": {**TEMPLATE, "capacity": "spot"},
                       "targets": {"b": {"template": True, "reservation": RESERVATION}}}},
            "batch.targets.b.reservation",
            "the job is spot",
        ),
        (
            {"batch": {"template": {**TEMPLATE, "zone": "us-east1-b"}}}, "batch.template.zone", "in us-central1",
        ),
        ({"batch": {"notifications": {"retention_s": 5}}}, "batch.notifications.retention_s", "600"),
        (vertex(network={"kind": "peered", "network": "projects/p/global/networks/n"}), "vertex.network", "number"),
        (
            vertex(network={"kind": "attachment", "network_attachment": ATTACHMENT.replace("central", "east")}),
            "vertex.network.network_attachment",
            "us-east1",
        ),
        (
            {"vertex": {"targets": {"v": {"persistent_resource": "kept"}}}},
            "vertex.targets.v.persistent_resource",
            "no key of persistent_resources",
        ),
        (vertex(claims={"kind": "existing", "database": "Claims"}), "vertex.claims", '"(default)"'),
        (vertex(tensorboard={"kind": "existing", "name": "runs"}), "vertex.tensorboard.name", "tensorboards/<id>"),
        (
            {"vertex": {"targets": {"b": {}}}, **batch()},
            "vertex.targets.b",
            "is the name of a target of batch too",
        ),
        ({"images": {"i": {"repository_id": "My_Images"}}}, "images.i.repository_id", "match"),
    ],
)  # fmt: skip
def test_what_is_refused(parts: dict[str, Any], path: str, says: str) -> None:
    with pytest.raises(ConfigFaults) as refused:
        load_environment({**environment(), "gcp": {**environment()["gcp"], **parts}})
    (line,) = [line for line in str(refused.value).splitlines() if path in line]
    assert says in line


def test_a_target_of_google_batch() -> None:
    parts = {
        "batch": {
            "notifications": {},
            "template": TEMPLATE,
            "targets": {
                "b": {"zones": ["us-central1-a"], "machine_types": ["g2-standard-8"], "template": True},
                "wide": {"reservation": RESERVATION, "external_address": True, "boot_image": "batch-debian"},
            },
        }
    }
    outputs = ran(environment(**parts)).exports
    assert outputs["batch_targets"] == "gs://batch-0a1b2c3/accel-targets"
    target, wide = read_one(outputs["targets"]["b"]), read_one(outputs["targets"]["wide"])
    assert isinstance(target, GoogleBatchTarget) and isinstance(wide, GoogleBatchTarget)
    assert (target.project, target.region, target.zones) == (gcp.PROJECT, "us-central1", ["us-central1-a"])
    assert (target.network, target.subnetwork) == ("network-id", "network-us-central1-id")
    assert target.service_account == f"batch-0a1b2c3@{gcp.PROJECT}.iam.gserviceaccount.com"
    assert (target.bucket, target.tags) == ("batch-0a1b2c3", ["accel-batch"])
    assert (target.notifications, target.instance_template) == ("batch-states-id", "batch-template-id")
    assert target.labels["accel-owner"] == "ml"
    assert (wide.instance_template, wide.reservation, wide.boot_image) == (None, RESERVATION, "batch-debian")
    assert (wide.external_address, wide.zones) == (True, [])


def test_a_target_in_another_region() -> None:
    subnets = {"us-central1": SUBNET, "us-east1": {k: v.replace("10.", "11.", 1) for k, v in SUBNET.items()}}
    network = {"kind": "create", "subnets": subnets}
    made = ran(environment(network, **batch(region="us-east1", zones=["us-east1-c"]))).exports["targets"]["b"]
    assert (made["region"], made["subnetwork"]) == ("us-east1", "network-us-east1-id")


def test_a_target_of_vertex() -> None:
    parts = {
        "vertex": {
            "tensorboard": {"kind": "create"},
            "network": {"kind": "attachment", "network_attachment": ATTACHMENT},
            "persistent_resources": {
                "kept": {
                    "pools": {
                        "gpu": {"machine_type": "g2-standard-8"},
                        "old": {"machine_type": "n1-standard-8", "accelerator": "T4"},
                    }
                }
            },
            "targets": {"v": {"persistent_resource": "kept"}, "plain": {"machine_types": ["g2-standard-8"]}},
        }
    }
    seen = ran(environment(None, **parts))
    target = read_one(seen.exports["targets"]["v"])
    assert isinstance(target, VertexTarget)
    assert (target.bucket, target.claims) == ("vertex-0a1b2c3", "vertex-claims-id")
    assert (target.network, target.network_attachment) == (None, ATTACHMENT)
    assert target.persistent_resource == "kept-0a1b2c3"
    assert target.persistent_machines == ["g2-standard-8", "n1-standard-8+nvidia-tesla-t4x1"]
    assert seen.exports["targets"]["plain"]["machine_types"] == ["g2-standard-8"]
    assert "persistent_resource" not in seen.exports["targets"]["plain"]
    kept = seen.one("vertex/aiPersistentResource:AiPersistentResource").inputs
    assert kept["pscInterfaceConfig"] == {"networkAttachment": ATTACHMENT}
    assert seen.exports["vertex_targets"] == "gs://vertex-0a1b2c3/accel-targets"


def test_what_is_there_already() -> None:
    board = "projects/p/locations/us-central1/tensorboards/42"
    parts = vertex(
        claims={"kind": "existing", "database": "(default)"},
        tensorboard={"kind": "existing", "name": board},
        network={"kind": "peered", "network": "projects/12/global/networks/n"},
    )
    seen = ran(environment(None, **parts))
    target = seen.exports["targets"]["v"]
    assert target["claims"] == f"projects/{gcp.PROJECT}/databases/(default)"
    assert (target["tensorboard"], target["network"]) == (board, "projects/12/global/networks/n")
    assert not seen.of("firestore/database:Database") and not seen.of("vertex/aiTensorboard:AiTensorboard")


def test_without_a_table_of_claims() -> None:
    assert "claims" not in ran(environment(None, **vertex(claims=None))).exports["targets"]["v"]


def test_targets_are_published_where_jobs_find_them() -> None:
    seen = ran(environment(**batch(), **vertex()))
    written = {one.inputs["name"]: one.inputs for one in seen.of("storage/bucketObject:BucketObject")}
    assert set(written) == {"accel-targets/b.json", "accel-targets/v.json"}
    # The provider takes whatever is in an object for a secret.
    published = json.loads(written["accel-targets/b.json"]["content"]["value"])
    assert {**published, "published": "gs://batch-0a1b2c3/accel-targets"} == seen.exports["targets"]["b"]
    assert written["accel-targets/v.json"]["bucket"] == "vertex-0a1b2c3"


def test_a_preview_shows_what_an_update_makes() -> None:
    whole = environment(**batch(), **vertex(tensorboard={"kind": "create"}), images={"training": {}})

    def names(preview: bool) -> list[tuple[str, str]]:
        return sorted((one.type, one.name) for one in ran(whole, preview=preview).registrations)

    assert names(preview=True) == names(preview=False)


def test_image_repositories_alone() -> None:
    seen = ran(environment(None, images={"training": {"location": "us"}}))
    assert seen.exports == {"gcp_repositories": {"training": f"us-docker.pkg.dev/{gcp.PROJECT}/dev-training"}}


def test_what_is_kept_is_said_to_cost_money() -> None:
    kept = {"kept": {"pools": {"gpu": {"machine_type": "g2-standard-8"}}}}
    parts = vertex(persistent_resources=kept, tensorboard={"kind": "create"})
    section = load_environment(environment(None, **parts, images={"training": {}})).gcp
    assert section is not None
    said = [line.partition(":")[0] for line in excluded_costs(section)]
    assert said == ["gcp", "gcp.vertex.tensorboard", "gcp.images"]
    (line,) = machines(section, 0.3)  # has a price
    assert line.component == "gcp.vertex.persistent_resources.kept.pools.gpu" and line.envelope.floor.usd
