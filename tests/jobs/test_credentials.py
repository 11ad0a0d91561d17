"""A law over every field of every target: none of them decides to whom credentials go.

Each text of a target is replaced by addresses of somebody else, and the commands are run with credentials of both
clouds. A request that carries credentials has to be for a host of the cloud's own, or for the API server that Google
names.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.every_target import FIT, MADE, full, put, texts, usable
from tests.support.soak import SOAK
from tests.support.wire import API_SERVER, Wire, held

EVIL = "evil.example"
HOSTILE = (f"{EVIL}/x?", f"https://{EVIL}/", f"x@{EVIL}#")
JOB = {"name": "a", "image": "us-docker.pkg.dev/acme/ml/train:1.0", "command": ["x"], "timeout_s": 60}
COMMANDS = (
    ("ls", "--to", "x", "--all"),
    ("targets", "-o", "wide"),
    ("doctor",),
    ("submit", "job.yaml", "--to", "x"),
    ("tend", "--to", "x"),
    ("spend",),
)


@pytest.fixture
def wire(home: Path, monkeypatch: pytest.MonkeyPatch) -> Wire:
    monkeypatch.setenv("ACCEL_TARGETS", "targets.json")
    return held(monkeypatch)


def told(target: dict[str, Any], command: tuple[str, ...], wire: Wire) -> str:
    Path("targets.json").write_text(json.dumps({"x": target}))
    Path("job.yaml").write_text(json.dumps({**JOB, **FIT[target["kind"]]}))
    return wire.run(*command)


MAKES = {
    "aws-batch": "batch.us-east-1.amazonaws.com",
    "gke": API_SERVER,
    "tpu-vm": "tpu.googleapis.com",
    "gce": "compute.googleapis.com",
    "google-batch": "batch.googleapis.com",
    "vertex": "us-central1-aiplatform.googleapis.com",
}


@pytest.mark.parametrize("kind", MADE)
def test_the_law_sees_the_requests_that_make_a_job(kind: str, wire: Wire) -> None:
    assert "error" not in told(usable(kind), ("submit", "job.yaml", "--to", "x", "--dry-run"), wire)
    told(usable(kind), ("submit", "job.yaml", "--to", "x"), wire)
    assert (MAKES[kind], True) in wire.sent, wire.sent
    assert wire.strangers() == []


CASES = [(kind, place) for kind in MADE for place in texts(full(kind))]


@pytest.mark.parametrize(("kind", "place"), CASES, ids=[f"{kind}.{'.'.join(map(str, at))}" for kind, at in CASES])
def test_no_field_decides_where_credentials_go(kind: str, place: tuple[str | int, ...], wire: Wire) -> None:
    for value in HOSTILE if SOAK else HOSTILE[:2]:
        target = put(kind, place, value)
        for command in COMMANDS:
            said = told(target, command, wire)
            assert wire.strangers() == [], (value, command, said)
