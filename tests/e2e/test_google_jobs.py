"""Jobs on Google Batch and Vertex AI, from `pulumi up` to their end: tasks and replicas that really run."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.engine import Sandbox
from tests.support.meeting import MEETING
from tests.support.project import Stack
from tests.support.soak import sampled, soak_only
from tests.support.sweeping import sweep, swept
from tests.support.waiting import until

from . import files_of_others as files
from .conftest import Shell, shell_on
from .google import PROJECT, Call, caller, preempt, printed, status

CHECKPOINT = """
import os, pathlib, time
kept = pathlib.Path(os.environ["CHECKPOINT_DIR"]) / os.environ["ACCEL_JOB_NAME"]
if kept.exists():
    print("resumes at", kept.read_text(), flush=True)
else:
    kept.write_text("step 7")
    print("runs", flush=True)
    time.sleep(600)
"""
TARGETS = {"batch": "google-batch", "vertex": "vertex"}
SERVICES = pytest.mark.parametrize("target", list(TARGETS))


@pytest.fixture
def shell(services: Stack, managed: Sandbox, tmp_path: Path) -> Shell:
    return shell_on(managed, services.folder / "targets.json", tmp_path)


@pytest.fixture
def google(managed: Sandbox) -> Iterator[Call]:
    call = caller(managed)
    yield call
    call("DELETE", "sandbox-api/faults")


@pytest.fixture
def submit(shell: Shell, job: Callable[..., str], tmp_path: Path) -> Callable[..., str]:
    def send(name: str, to: str, *more: str, **fields: Any) -> str:
        fields = {"command": ["python", "-c", CHECKPOINT], "env": {"CHECKPOINT_DIR": str(tmp_path)}, **fields}
        return shell.jobs("submit", job(name=name, **fields), "--to", to, "-o", "id", *more)

    return send


@SERVICES
def test_the_sample_job_trains(target: str, shell: Shell) -> None:
    sets = ["env.STEP_SLEEP_MS=0", "env.EPOCHS=3"]
    options = [part for each in sets for part in ("--set", each)]
    ref = shell.jobs("submit", "examples/jobs/digits.yaml", "--to", target, "--wait", *options)
    assert ref.startswith(f"{TARGETS[target]}:{PROJECT}.us-central1/")
    assert "epoch 3/3 loss" in shell.jobs("logs", ref)
    ended = status(shell, ref)
    attempts = {"batch": 1, "vertex": None}[target]  # Vertex does not tell
    assert (ended["phase"], ended["exit_code"], ended["attempts"]) == ("SUCCEEDED", 0, attempts)
    assert ref in shell.jobs("ls", "-a", "--to", target, "-o", "id")


def test_a_spot_task_that_is_taken_away_runs_again(submit: Callable[..., str], shell: Shell, google: Call) -> None:
    """Its first attempt's failure stays among the job's events, and is not how it ended."""
    ref = submit("reclaimed", "batch", spot=True)
    printed(shell, ref, "runs")
    preempt(google, ref)
    shell.jobs("wait", ref, "--timeout", "90s")
    ended = status(shell, ref)
    assert (ended["phase"], ended["attempts"], ended["lost"], ended["exit_code"]) == ("SUCCEEDED", 2, 1, 0)
    assert "resumes at step 7" in shell.jobs("logs", ref)


@soak_only
def test_a_spot_job_of_vertex_starts_anew(submit: Callable[..., str], shell: Shell, google: Call) -> None:
    ref = submit("reclaimed-too", "vertex", spot=True)
    printed(shell, ref, "runs")
    preempt(google, ref, "customJobs")
    shell.jobs("wait", ref, "--timeout", "90s")
    assert status(shell, ref)["phase"] == "SUCCEEDED"
    assert "resumes at step 7" in shell.jobs("logs", ref)


@SERVICES
def test_nodes_of_one_job_meet(target: str, submit: Callable[..., str], shell: Shell) -> None:
    ref = submit("meet", target, "--wait", nodes=3, command=["python", "-c", MEETING])
    text = shell.jobs("logs", ref)
    assert {"met rank 1", "met rank 2"} <= {line.partition("] ")[2] for line in text.splitlines()}
    assert text.count("heard done") == 2


@soak_only
def test_a_sweep_is_one_job(submit: Callable[..., str], shell: Shell) -> None:
    show = "import os; i = int(os.environ[os.environ['ACCEL_TASK_INDEX_FROM']]); print('task', i); exit(3 * (i == 4))"
    ref = submit("sweep", "batch", command=["python", "-c", show], tasks=6, parallelism=3, retries=0)
    shell.jobs("wait", ref, "--timeout", "90s", code=125)
    ended = status(shell, ref)
    assert ended["tasks"] == {"SUCCEEDED": 5, "FAILED": 1}
    assert "task 2" in shell.jobs("logs", ref, "--task", "2")
    assert "exit code 3" in shell.jobs("explain", ref)


def test_a_sweep_runs_its_failed_tasks_again(submit: Callable[..., str], shell: Shell, tmp_path: Path) -> None:
    mended = tmp_path / "mended"
    first = submit(to="batch", **sweep(mended))
    shell.jobs("wait", first, "--timeout", "90s", code=125)
    mended.touch()
    second = shell.jobs("retry", first, "-o", "id")
    shell.jobs("wait", second, "--timeout", "90s")
    found = swept(shell.jobs("results", second, "-o", "json"))
    assert {each["task"] for each in found if each["job"] == second} == {2, 3}
    assert {each["state"] for each in found} == {"SUCCEEDED"}


def test_a_sweep_of_vertex_is_a_job_for_each_task(submit: Callable[..., str], shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "mended").touch()
    refs = submit(to="vertex", **{**sweep(tmp_path / "mended"), "sweep": {"grid": {"RATE": ["1", "2"], "SIZE": ["3"]}}})
    shell.jobs("wait", *refs.split(), "--timeout", "90s")
    found = json.loads(shell.jobs("results", *refs.split(), "--by", "accuracy", "--max", "-o", "json"))
    assert [(each["task"], each["params"], each["metrics"]["accuracy"]) for each in found] == [
        (1, {"RATE": "2", "SIZE": "3"}, 12.0),
        (0, {"RATE": "1", "SIZE": "3"}, 6.0),
    ]


@SERVICES
def test_a_failure_is_explained(target: str, submit: Callable[..., str], shell: Shell) -> None:
    ref = submit("fails", target, command=["python", "-c", "raise SystemExit(7)"], retries=0)
    shell.jobs("wait", ref, "--timeout", "60s", code=125)
    assert status(shell, ref)["exit_code"] == 7
    assert json.loads(shell.jobs("explain", ref, "-o", "json"))["cause"] == "exit-code"


@SERVICES
def test_one_key_makes_one_job(target: str, submit: Callable[..., str], shell: Shell) -> None:
    first = submit("once", target, "--key", "k", command=["true"])
    assert submit("once", target, "--key", "k", command=["true"]) == first
    shell.jobs("wait", first, "--timeout", "60s")
    again = shell.jobs("retry", first, "-o", "id")
    assert again != first
    shell.jobs("wait", again, "--timeout", "60s")


@SERVICES
def test_cancelling_ends_it(target: str, submit: Callable[..., str], shell: Shell) -> None:
    ref = submit("stop", target)
    printed(shell, ref, "runs")
    shell.jobs("cancel", ref, "-y")
    until(lambda: status(shell, ref)["phase"] == "FAILED")


def test_capacity_that_is_not_there_is_named(submit: Callable[..., str], shell: Shell, google: Call) -> None:
    google("POST", "sandbox-api/faults", {"stockout": ["g2-standard-4"]})
    ref = submit("waits", "batch", accelerator={"type": "l4", "count": 1}, command=["true"])
    until(lambda: "stock" in shell.jobs("explain", ref) or "capacity" in shell.jobs("explain", ref))
    google("DELETE", "sandbox-api/faults")
    shell.jobs("wait", ref, "--timeout", "60s")


def test_a_bucket_that_is_not_there_is_named(submit: Callable[..., str], shell: Shell, tmp_path: Path) -> None:
    """Batch finds out on the VM, and Vertex AI before it makes the job."""
    mounts = [{"source": "gs://acme-nowhere/data", "path": "/data"}]
    ref = submit("no-bucket", "batch", command=["true"], mounts=mounts, retries=0)
    shell.jobs("wait", ref, "--timeout", "60s", code=125)
    found = json.loads(shell.jobs("explain", ref, "-o", "json"))
    assert found["cause"] == "mount" and "acme-nowhere" in json.dumps(found["evidence"])
    path = tmp_path / "no-output.yaml"
    job = {"name": "no-output", "image": "local/examples", "command": ["true"]}
    path.write_text(yaml.safe_dump({**job, "vertex": {"output": "gs://acme-nowhere/out"}}))
    said = shell.fails("submit", str(path), "--to", "vertex", code=4)
    errors = [line for line in said if line.startswith("error: ")]
    assert len(errors) == 1 and "gs://acme-nowhere/out" in errors[0], said


def test_targets_are_published(shell: Shell, services: Stack) -> None:
    outputs = services.outputs()
    for name, kind in TARGETS.items():
        rows = json.loads(shell.jobs("targets", "--targets", outputs[f"{name}_targets"], "-o", "json"))
        assert {row["name"]: row["kind"] for row in rows} == {name: kind, "local": "local"}
    assert "fail" not in shell.jobs("doctor")


DOCUMENTS = {
    "one_gpu.json": (
        "google-batch",
        "batch",
        ["--mount", "/mnt/disks/data=gs://{bucket}"],
        ["google-batch.unexpanded"],
    ),
    "sweep.json": ("google-batch", "batch", [], ["google-batch.fit", "google-batch.gpus-option"]),
    "two_gpus.yaml": ("vertex", "vertex", [], ["vertex.command.one-word"]),
    "two_h100.yaml": ("vertex", "vertex", ["--capacity", "spot"], ["gcp.gpu.small-a3"]),
    "clusters.yaml": ("ai-platform", "vertex", [], []),
    "legacy_container.yaml": ("ai-platform", "vertex", [], ["gcp.legacy.machine-type", "ai-platform.k80"]),
}
"""Documents of tests/golden/imports: their kind, a target, options, and rules that correct them."""


@pytest.mark.parametrize("document", sampled(DOCUMENTS, ["one_gpu.json", "clusters.yaml"]))
def test_what_was_brought_along_runs_to_its_end(document: str, shell: Shell, services: Stack, tmp_path: Path) -> None:
    kind, target, options, rules = DOCUMENTS[document]
    bucket = json.loads((services.folder / "targets.json").read_text())[target]["bucket"]
    options = [each.format(bucket=bucket) for each in options]
    where = f"tests/golden/imports/{document}"
    done = shell.start("jobs", "import", kind, where, "--image", "local/tests/e2e/brought", *options)
    text, report = done.communicate(timeout=60)
    assert done.returncode == 0, report
    assert all(rule in report for rule in rules), report
    job = yaml.safe_load(text)
    job.setdefault("command", ["python", "train.py"])
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(job))
    ref = shell.jobs("submit", str(path), "--to", target, "--wait", "-o", "id")
    assert status(shell, ref)["phase"] == "SUCCEEDED"
    assert "trained with" in shell.jobs("logs", ref)


PASTED = {
    "google-batch": (files.GOOGLE_BATCH, "batch"),
    "vertex": (files.VERTEX, "vertex"),
    "ai-platform": (files.AI_PLATFORM, "vertex"),
    "skypilot": (files.SKYPILOT, "batch"),
    "dstack": (files.DSTACK, "batch"),
}
"""Files and commands by kind, and a target."""


@pytest.mark.parametrize("kind", sampled(PASTED, list(PASTED)[:1]))
def test_a_file_of_another_tool_runs_to_its_end(kind: str, shell: Shell, tmp_path: Path) -> None:
    text, target = PASTED[kind]
    assert "trained with --epochs 2" in files.imported(shell, text, kind, target, tmp_path)
