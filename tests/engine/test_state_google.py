"""The state of a stack in a bucket of Cloud Storage: the real engine against the sandbox's fake."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.engine import Engine, Sandbox
from tests.support.google_fake import Fake
from tests.support.storage_emulator import storage_emulator

pytest_plugins = ["tests.support.google_fake"]
pytestmark = pytest.mark.engine
BUCKETS = "storage.googleapis.com/storage/v1/b"
SECRET = "pLaNtEdInTheConfig"
PROGRAM = """
import pulumi
import pulumi_aws as aws

aws.ssm.Parameter("kept", type="String", value=pulumi.Config("own").require_secret("value"))
"""


@pytest.fixture
def kept(tmp_path: Path, sandbox: Sandbox, fake: Fake) -> Iterator[Engine]:
    fake.call("POST", BUCKETS, {"name": "state"}, project="accel-sandbox")
    with storage_emulator(fake) as host:
        environ = {
            "PULUMI_BACKEND_URL": "gs://state",
            "STORAGE_EMULATOR_HOST": host,
            "GOOGLE_OAUTH_ACCESS_TOKEN": "not asked for",
            "PULUMI_CONFIG_PASSPHRASE": "own",
        }
        engine = Engine(tmp_path / "own", sandbox, PROGRAM, environ=environ)
        engine.run("config", "set", "--secret", "own:value", SECRET, "--stack", engine.stack)
        yield engine
        engine.destroy(check=False)


def test_a_state_in_a_bucket_with_its_lock(kept: Engine, fake: Fake) -> None:
    def names(prefix: str) -> list[str]:
        found = fake.call("GET", f"{BUCKETS}/state/o", prefix=f".pulumi/{prefix}/").get("items", [])
        return [each["name"] for each in found]

    def text(name: str) -> str:
        return fake.ask("GET", f"{BUCKETS}/state/o/{quote(name, safe='')}", alt="media").text

    assert kept.up().counts["create"] == 1
    state = f".pulumi/stacks/{kept.project}/{kept.stack}.json"
    assert state in names("stacks") and names("history") and names("locks") == []
    held = json.loads(text(state))["checkpoint"]["latest"]["resources"]
    assert "kept" in [each["urn"].rpartition("::")[2] for each in held]
    assert [name for name in names("") if SECRET in text(name)] == []
    assert kept.preview().ops("same") == {}

    # Another one is at work: its lock is an object, and keeps everybody else out.
    lock = f".pulumi/locks/organization/{kept.project}/{kept.stack}/other.json"
    told = {"pid": 1, "username": "ana", "hostname": "laptop", "timestamp": "2026-11-22T00:00:00Z"}
    upload = "storage.googleapis.com/upload/storage/v1/b/state/o"
    fake.call("POST", upload, told, uploadType="media", name=lock)
    refused = kept.up(check=False)
    assert "the stack is currently locked by 1 lock" in refused.text and "ana@laptop" in refused.text
    kept.run("cancel", "--yes", kept.stack)
    assert names("locks") == []
    assert kept.destroy().counts["delete"] == 1
    assert json.loads(text(state))["checkpoint"]["latest"].get("resources", []) == []
