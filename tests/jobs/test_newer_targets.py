"""A law over every target: one that knows more than this version (a machine, a place, a field) is no fault of accel."""

import json
import random
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any

import pytest

from tests.support.every_target import MADE, Path, full, put, replaced, texts, usable
from tests.support.soak import SOAK
from tests.support.wire import Wire, held

NEWER = ("z9-highgpu-8g", "p9.48xlarge", "p9", "v9x-16", "n1-standard-8+nvidia-z9x4", "z9", "Z 9", "")
"""Machines that no catalogue has, as several clouds would write them."""
MACHINES: list[tuple[str, Path]] = [
    ("aws-batch", ("environments", 0, "instance_types")),
    *(("gke", ("pools", "l4", field)) for field in ("machine_type", "accelerator", "tpu_accelerator", "gpu_partition")),
    ("tpu-vm", ("types",)),
    ("tpu-vm", ("zones",)),
    ("gce", ("machine_types",)),
    ("gce", ("zones",)),
    ("google-batch", ("machine_types",)),
    ("google-batch", ("zones",)),
    ("vertex", ("machine_types",)),
    ("vertex", ("persistent_machines",)),
]
IMAGE = "us-docker.pkg.dev/acme/ml/train:1.0"
JOBS = {
    "cpus.yaml": {"cpus": 1, "memory_mib": 512},
    "gpu.yaml": {"accelerator": {"count": 1}},
    "l4.yaml": {"accelerator": {"type": "l4"}},
    "tpu.yaml": {"accelerator": {"type": "v5litepod-16"}},
    "nodes.yaml": {"accelerator": {"type": "l4"}, "nodes": 2},
    "named.yaml": {"accelerator": {"type": NEWER[0]}},
    "vertex.yaml": {"vertex": {"machine_type": NEWER[0]}},
    "gce.yaml": {"gce": {"machine_type": NEWER[0]}},
    "batch.yaml": {"google_batch": {"machine_type": NEWER[0]}},
    "image.yaml": {"image": "registry.example/train:1.0", "accelerator": {"count": 1}},
}
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("targets",),
    ("targets", "-o", "wide"),
    ("ls",),
    ("doctor",),
    *(
        line
        for job in JOBS
        for line in (
            ("validate", job, "--to", "x"),
            ("offers", job),
            ("cost", job),
            ("cost", job, "--to", "x"),
            ("submit", job, "--to", "x", "--dry-run"),
            ("submit", job, "--to", "cheapest", "--dry-run"),
        )
    ),
    ("explain", "aws-batch:us-east-1/0a1b2c3d"),
    ("explain", "gke:acme-ml.us-central1.gpu.team-a/a-1"),
    ("explain", "gce:acme-ml.accel-jobs/a-1"),
    ("explain", "google-batch:acme-ml.us-central1/a-1"),
    ("explain", "vertex:acme-ml.us-central1/1"),
)
JUDGED = [line for line in COMMANDS if len(line) > 1 and line[1] in JOBS]
FEW = JUDGED if SOAK else [("targets",), *(line for line in JUDGED if line[0] == "offers" or line[-1] == "--dry-run")]
"""For the many targets: what judges a job, and asks no cloud."""


@pytest.fixture
def wire(home: File, monkeypatch: pytest.MonkeyPatch) -> Wire:
    monkeypatch.setenv("ACCEL_TARGETS", "targets.json")
    for name, fields in JOBS.items():
        job = {"name": "a", "image": IMAGE, "command": ["x"], "timeout_s": 60, **fields}
        (home / name).write_text(json.dumps(job))
    return held(monkeypatch)


def check(target: dict[str, Any], commands: Sequence[tuple[str, ...]], what: object, wire: Wire) -> None:
    File("targets.json").write_text(json.dumps({"x": target, "here": {"kind": "local"}}))
    for command in commands:
        said = wire.run(*command)
        assert "bug in accel" not in said, (what, command, said)


def more(value: Any) -> Any:
    """With a field that a newer accel has, in everything that is not the author's names."""
    if isinstance(value, dict):
        return {**{key: more(each) for key, each in value.items()}, "newer": {"than": "this"}}
    return [more(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("kind", "place"), MACHINES, ids=[f"{kind}.{place[-1]}" for kind, place in MACHINES])
def test_a_machine_that_the_catalogue_does_not_know(kind: str, place: Path, wire: Wire) -> None:
    known: Any = usable(kind, place)
    for part in place:
        known = known[part]
    several = isinstance(known, list)
    for machine in NEWER if SOAK else NEWER[:2]:
        check(put(kind, place, [machine] if several else machine), COMMANDS, machine, wire)
        if several:
            check(put(kind, place, [machine, *known]), COMMANDS, [machine, *known], wire)


@pytest.mark.parametrize("seed", range(400 if SOAK else 20))
def test_several_fields_at_once(seed: int, wire: Wire) -> None:
    drawn = random.Random(seed)
    kind = drawn.choice([*MADE])
    target = full(kind) if drawn.random() < 0.5 else usable(kind)
    places = [*texts(target)]
    changed = drawn.sample(places, k=min(len(places), drawn.randint(2, 6)))
    for place in changed:
        target = replaced(target, place, drawn.choice(NEWER))
    check(target, FEW, changed, wire)


@pytest.mark.parametrize("kind", MADE)
def test_fields_of_a_newer_accel(kind: str, wire: Wire) -> None:
    target = usable(kind)
    named = ("definitions", "pools", "volumes", "labels", "subnetworks")
    newer = {key: value if key in named else more(value) for key, value in target.items()}
    check({**newer, "newer": {"than": "this"}}, COMMANDS, "more fields", wire)


CASES = [(kind, place) for kind in MADE for place in texts(full(kind))][:: 1 if SOAK else 3]


@pytest.mark.parametrize(("kind", "place"), CASES, ids=[f"{kind}.{'.'.join(map(str, at))}" for kind, at in CASES])
def test_any_text_that_this_version_does_not_know(kind: str, place: Path, wire: Wire) -> None:
    for value in NEWER if SOAK else NEWER[:1]:
        check(put(kind, place, value), FEW, value, wire)


def test_what_is_said_of_a_machine_of_tomorrow(wire: Wire) -> None:
    File("targets.json").write_text(json.dumps({"x": put("vertex", ("machine_types",), [NEWER[0]])}))
    said = wire.run("submit", "cpus.yaml", "--to", "x", "--dry-run")
    assert "vertex.machine_type: the target has z9-highgpu-8g, whose size this accel does not know" in said
    assert "cannot run it: x: " in wire.run("offers", "cpus.yaml")


CHOICES = [
    ("aws-batch", ("environments", 0, "capacity")),
    ("gke", ("pools", "l4", "driver")),
    ("gke", ("pools", "l4", "taints", 0, "effect")),
    ("gce", ("allowances", "ledger", "kind")),
]


@pytest.mark.parametrize(("kind", "place"), CHOICES, ids=[str(place[-1]) for _, place in CHOICES])
def test_a_choice_of_tomorrow_leaves_the_other_targets_be(kind: str, place: Path, wire: Wire) -> None:
    target = put(kind, place, "calendar")
    File("targets.json").write_text(json.dumps({"x": target, "here": {"kind": "local"}}))
    listed = wire.run("targets")
    assert "here" in listed and f"needs a newer accel: {place[0]}." in listed
    said = wire.run("submit", "cpus.yaml", "--to", "x", "--dry-run")
    assert said.startswith("error: target x: needs a newer accel: ") and str(place[0]) in said
    assert "error" not in wire.run("submit", "cpus.yaml", "--to", "here", "--dry-run", "--set", "image=local/a")
