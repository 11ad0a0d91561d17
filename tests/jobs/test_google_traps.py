"""What looks right and is not, as people write it: a job file through a dry run, and documents of other tools through
`import`. Each is refused, corrected or warned of, in one line with its place, its value and what to write instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from accel.contract.targets import AnyTarget, write
from accel.rules.table import rules
from tests.jobs.backends import gce_target, gke_target, google_batch_target, vertex_jobs
from tests.jobs.google_documents import DOCUMENTS, Document
from tests.jobs.google_traps import TRAPS, Trap
from tests.jobs.test_offers import SPOT

JOB = {"name": "digits", "image": "us-docker.pkg.dev/acme/ml/train:1.4", "command": ["python3", "train.py"]}
TARGETS: dict[str, AnyTarget] = {
    "queue": SPOT,
    "gke": gke_target.make_target(),
    "gce": gce_target.make_target(),
    "batch": google_batch_target.make_target(),
    "vertex": vertex_jobs.make_target(),
}


@pytest.fixture
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with targets, and no way to any cloud."""
    (home / "targets.json").write_text(json.dumps(write(TARGETS)))
    monkeypatch.setenv("ACCEL_TARGETS", "targets.json")
    return home


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: f"{trap.what} ({trap.to})")
def test_a_job_file(trap: Trap, here: Path, invoke: Callable[..., Result]) -> None:
    (here / "job.yaml").write_text(yaml.safe_dump({**JOB, **trap.fields}, sort_keys=False))
    done = invoke("submit", "job.yaml", "--dry-run", "--to", trap.to)
    assert done.exit_code == trap.code, done.stderr
    assert bool(done.stdout) == (trap.code == 0)
    head = "error: job.yaml:" if trap.code else "warning: "
    lines = [line for line in done.stderr.splitlines() if all(words in line for words in trap.says)]
    assert lines and lines[0].startswith(head), done.stderr
    assert len(lines[0]) < 500


@pytest.mark.parametrize("each", DOCUMENTS, ids=lambda each: each.what)
def test_a_document(each: Document, here: Path, invoke: Callable[..., Result]) -> None:
    (here / "config.yaml").write_text(each.config)
    done = invoke("import", each.kind, "-", text=each.text)
    assert done.exit_code == each.code, done.stderr
    assert bool(done.stdout) == (each.code == 0)
    lines = [line for line in done.stderr.splitlines() if all(words in line for words in each.says)]
    assert lines, done.stderr
    assert not each.code or lines[0].startswith("error: stdin"), lines[0]
    if each.rule:
        assert each.rule in rules()
        assert any(each.rule in line.rpartition("[")[2] for line in lines), lines


@pytest.mark.parametrize("kind", ["google-batch", "vertex"])
@pytest.mark.parametrize("scope", ["acme", ".us-central1", "acme.", "acme.localhost:8080?", "a b.us-east1"])
def test_a_reference_that_leads_elsewhere(kind: str, scope: str, here: Path, invoke: Callable[..., Result]) -> None:
    for verb in (["get"], ["logs"], ["cancel", "-y"], ["explain"]):
        done = invoke(*verb, f"{kind}:{scope}/1")
        assert done.exit_code == 2
        assert f"expected {kind}:<project>.<region>/" in done.stderr


@pytest.mark.parametrize("name", ["batch", "vertex"])
def test_a_target_of_a_newer_stack(name: str, here: Path, invoke: Callable[..., Result]) -> None:
    known = json.loads((here / "targets.json").read_text())
    known[name] |= {"schema": 99, "of_tomorrow": {"a": 1}}
    (here / "targets.json").write_text(json.dumps(known))
    (here / "job.yaml").write_text(yaml.safe_dump(JOB))
    assert invoke("submit", "job.yaml", "--dry-run", "--to", name).exit_code == 0
    del known[name]["region"]
    (here / "targets.json").write_text(json.dumps(known))
    done = invoke("submit", "job.yaml", "--dry-run", "--to", name)
    assert (done.exit_code, done.stderr.count("error: ")) == (2, 1)
    assert f"{name}.region: is missing" in done.stderr
