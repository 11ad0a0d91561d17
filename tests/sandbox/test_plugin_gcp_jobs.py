"""Topics, Firestore, TensorBoards and repositories in the gcp stand-in: what a component does not ask of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine import Engine, Sandbox
from tests.support.google_fake import Fake
from tests.support.soak import soak_only

pytest_plugins = ["tests.support.google_fake"]
pytestmark = pytest.mark.engine
CONFIG = {"gcp:project": "accel-sandbox", "gcp:region": "us-central1"}
PROGRAM = """
import pulumi
import pulumi_gcp as gcp

database = gcp.firestore.Database(
    "db", location_id="nam5", type="FIRESTORE_NATIVE", delete_protection_state=PROTECTION, deletion_policy="DELETE"
)
if FIELD:
    gcp.firestore.Field(
        "expiry", database=database.name, collection="rows", field="expires",
        ttl_config=gcp.firestore.FieldTtlConfigArgs(),
    )
topic = gcp.pubsub.Topic("topic", labels={"stage": STAGE})
board = gcp.vertex.AiTensorboard("board", display_name="board", region="us-central1", labels={"stage": STAGE})
repository = gcp.artifactregistry.Repository(
    "images", repository_id="plain", location="us", format="DOCKER", labels={"stage": STAGE}
)
pulumi.export("database", database.id)
pulumi.export("topic", topic.id)
pulumi.export("board", board.name)
pulumi.export("repository", repository.id)
"""


def program(stage: str, *, protected: bool = False, field: bool = True) -> str:
    state = f"DELETE_PROTECTION_{'ENABLED' if protected else 'DISABLED'}"
    return f"STAGE = {stage!r}\nPROTECTION = {state!r}\nFIELD = {field!r}\n{PROGRAM}"


@pytest.fixture
def engine(tmp_path: Path, fake: Fake, provider: dict[str, str]) -> Iterator[Engine]:
    engine = Engine(tmp_path, Sandbox(fake.home, provider), config=CONFIG)
    yield engine
    fake.well()
    engine.write(program("b")).up(check=False)
    engine.destroy(check=False)


@soak_only
def test_what_changes_in_place_and_what_is_given_back(engine: Engine, fake: Fake) -> None:
    made = engine.write(program("a", protected=True)).up().outputs
    field = f"firestore.googleapis.com/v1/{made['database']}/collectionGroups/rows/fields/expires"
    assert "ttlConfig" in fake.call("GET", field)
    assert engine.up("--refresh").ops().keys() == {"same"}

    changed = engine.write(program("b", protected=True)).up()
    assert {each.name for each in changed.steps if each.op == "update"} == {"topic", "board", "images"}
    for host, name in (
        ("pubsub", made["topic"]),
        ("aiplatform", made["board"]),
        ("artifactregistry", made["repository"]),
    ):
        found = fake.call("GET", f"{host}.googleapis.com/v1/{name}")
        assert found["labels"]["stage"] == "b"

    engine.write(program("b", protected=True, field=False)).up()
    assert "ttlConfig" not in fake.call("GET", field), "a field is no more than its settings"
    assert "has delete protection enabled" in engine.destroy(check=False).text
    assert fake.ask("GET", f"firestore.googleapis.com/v1/{made['database']}").ok, "it is protected"
    engine.write(program("b", field=False)).up()
    engine.destroy()
    assert fake.ask("GET", f"firestore.googleapis.com/v1/{made['database']}").status_code == 404


@soak_only
def test_what_somebody_else_changed_is_seen(engine: Engine, fake: Fake) -> None:
    made = engine.write(program("a")).up().outputs
    topic = f"pubsub.googleapis.com/v1/{made['topic']}"
    fake.call("PATCH", topic, {"topic": {"name": made["topic"], "labels": {"stage": "x"}}, "updateMask": "labels"})
    drifted = engine.up("--refresh")
    assert {each.name for each in drifted.steps if each.op == "update"} == {"topic"}
    fake.call("DELETE", topic)
    again = engine.up("--refresh")
    assert {each.name for each in again.steps if each.op == "create"} == {"topic"}
