"""Each resource of every type that the sandbox makes is found, as if its creation were pending, under the id that it
has, and with a proof."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from sandbox.environment import environment
from sandbox.processes import stop
from tests.support import services
from tests.support.engine import WITHOUT_KUBERNETES, Engine, Sandbox, start
from tests.support.soak import soak_only
from tests.support.sought import sought

pytestmark = soak_only
PROGRAMS = Path(__file__).parents[1] / "sandbox" / "programs"
AWS = {"aws:region": "us-east-1", "aws:defaultTags": json.dumps({"tags": {"accel:stack": "test"}})}
ASKED = {
    "aws:ec2/route:Route": "other id",  # of table and destination, by which the provider reads it whatever its id
    "gcp:compute/attachedDisk:AttachedDisk": "NotSought",
    "gcp:billing/budget:Budget": "NotSought",
    "gcp:monitoring/notificationChannel:NotificationChannel": "NotSought",
    "gcp:vertex/aiTensorboard:AiTensorboard": "NotSought",
    "gcp:serviceaccount/account:Account": "not proven",  # it has neither labels nor a time
    "gcp:projects/iAMCustomRole:IAMCustomRole": "not proven",  # nor has it
    "gcp:compute/futureReservation:FutureReservation": "not proven",
}
"""What a person is asked about, or is found otherwise than it is in the state."""
PROJECT = "v1/projects/accel-sandbox"
SERVICES = (
    "aiplatform",
    "artifactregistry",
    "billingbudgets",
    "cloudfunctions",
    "cloudresourcemanager",
    "cloudscheduler",
    "compute",
    "container",
    "file",
    "firestore",
    "iam",
    "logging",
    "monitoring",
    "pubsub",
    "run",
    "secretmanager",
    "storage",
    "tpu",
)
THERE: dict[str, dict[str, Any]] = {
    f"secretmanager.googleapis.com/{PROJECT}/secrets?secretId=token": {"replication": {"automatic": {}}},
    f"artifactregistry.googleapis.com/{PROJECT}/locations/us/repositories?repositoryId=images": {"format": "DOCKER"},
}
"""What the program for Google names and does not make."""
GOOGLE = {
    "gcp:project": "accel-sandbox",
    "gcp:region": "us-central1",
    "gcp:defaultLabels": json.dumps({"accel-stack": "test"}),
}


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    home = tmp_path_factory.mktemp("own")
    start(home, WITHOUT_KUBERNETES)
    made = Sandbox(home, environment(home))
    url = json.loads((home / "google.json").read_text())["url"]
    signed = {"Authorization": f"Bearer {made.variables['GOOGLE_OAUTH_ACCESS_TOKEN']}"}
    services.enable(url, signed, *SERVICES)
    for path, body in THERE.items():
        answer = requests.post(f"{url}/{path}", json=body, headers=signed, timeout=120)
        assert answer.ok, answer.text
    yield made
    stop(home)


@pytest.mark.parametrize("program", ["compute", "storage", "monitoring"])
def test_aws(program: str, tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(tmp_path / program, sandbox, (PROGRAMS / f"{program}.py").read_text(), config=AWS)
    engine.up()
    told = sought(engine, monkeypatch, ASKED)
    engine.destroy()
    assert not told, "\n".join(told)


@pytest.mark.parametrize("program", ["google", "google_vms"])
def test_google(program: str, tmp_path: Path, google: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(tmp_path / program, google, (PROGRAMS / f"{program}.py").read_text(), config=GOOGLE)
    engine.up()
    told = sought(engine, monkeypatch, ASKED)
    engine.destroy(check=False)
    assert not told, "\n".join(told)
