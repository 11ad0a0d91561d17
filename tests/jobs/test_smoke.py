"""`submit --smoke`: what it leaves of a job on every platform, as `--dry-run` shows it; one run for real here."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from click.testing import Result

from jobs.model import smoke
from jobs.model.job import Job
from jobs.model.keys import of_smoke, submission_key
from jobs.model.sweep_tasks import variable
from tests.support.every_target import MADE

Invoke = Callable[..., Result]
Json = dict[str, Any]

TARGETS = {kind: make() for kind, make in MADE.items()}
IMAGE = "us-docker.pkg.dev/acme/ml/train:1.4"
JOB: Json = {"name": "digits", "image": IMAGE, "command": ["python3", "train.py"], "timeout_s": "12h"}
SIZE: Json = {"cpus": 2, "memory_mib": 4000}
GRID: Json = {"grid": {"LR": ["0.1", "0.01"], "SIZE": [32, 64]}}


class Case(NamedTuple):
    """A job, and what its smoke run's request has at some paths; `absent` is nowhere in it."""

    kind: str
    fields: Json
    has: Json
    absent: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    alike: bool = True
    """The job itself is taken there too."""


SPEC = "job.taskGroups.0"
CASES = [
    Case("aws-batch", {**SIZE, "tasks": 40, "retries": 3, "aws_batch": {"depends_on": [{"type": "SEQUENTIAL"}]}},
         {"submit.retryStrategy.attempts": 1, "submit.timeout.attemptDurationSeconds": 600},
         ("arrayProperties", "dependsOn"), ("1 of 40 tasks",)),
    Case("aws-batch", {**SIZE, "nodes": 4},
         {"submit.timeout.attemptDurationSeconds": 600}, ("nodeOverrides", "numNodes"), ("1 of 4 nodes",), False),
    Case("aws-batch", {**SIZE, "sweep": GRID}, {"submit.containerOverrides.command": JOB["command"]},
         ("arrayProperties",), ("1 of 4 tasks",)),
    Case("gke", {**SIZE, "tasks": 40, "parallelism": 8, "retries": 2}, {}, ("Indexed", "backoffLimitPerIndex")),
    Case("gke", {"accelerator": {"type": "a100", "count": 4}, "nodes": 2, "spot": "prefer", "deadline": "2d"}, {},
         ("JobSet", "ACCEL_ON_DEMAND_PLAN"), ("1 of 2 nodes",), False),
    Case("gke", {**SIZE, "sweep": GRID}, {}, ("Indexed",)),
    Case("tpu-vm", {"image": None, "accelerator": {"type": "v5litepod-16"}, "lost_retries": 5,
                    "tpu_vm": {"slices": 2}}, {"retries": 0, "lost_retries": 0, "timeout_s": 600}, (),
         ("1 of 2 slices",)),
    Case("gce", {"image": None, "accelerator": {"type": "l4"}, "nodes": 3, "gce": {"max_run": "2d"}},
         {"retries": 0, "lost_retries": 0, "timeout_s": 600}, (), ("1 of 3 nodes",)),
    Case("google-batch", {**SIZE, "tasks": 40, "retries": 2,
                          "google_batch": {"in_order": True, "exit_codes": [{"codes": [3], "action": "retry"}]}},
         {f"{SPEC}.taskCount": 1, f"{SPEC}.taskSpec.maxRunDuration": "600s"}, ("lifecyclePolicies",)),
    Case("google-batch", {**SIZE, "nodes": 4}, {f"{SPEC}.taskCount": 1}, ("requireHostsFile",)),
    Case("google-batch", {**SIZE, "image": None, "command": [], "tasks": 3,
                          "google_batch": {"runnables": [{"script": "env"}]}}, {f"{SPEC}.taskCount": 1}),
    Case("vertex", {"accelerator": {"type": "v100", "count": 8}, "nodes": 5,
                    "vertex": {"machine_type": "n1-highmem-96", "reduction_servers": {"replicas": 16}}},
         {"customJob.jobSpec.scheduling.timeout": "600s", "customJob.jobSpec.scheduling.disableRetries": True},
         ("reductionserver",), ("1 of 5 nodes", "without its reduction_servers")),
    Case("local", {"image": "local/examples", "tasks": 3, "retries": 2}, {}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def targets(home: Path) -> None:
    (home / ".accel").mkdir()
    known = {name: target.model_dump(mode="json") for name, target in TARGETS.items()}
    (home / ".accel" / "targets.json").write_text(json.dumps(known))


def written(home: Path, **fields: Any) -> str:
    values = {name: value for name, value in {**JOB, **fields}.items() if value is not None}
    if values.get("spot") == "prefer":
        values["work_s"] = "12h"
    (home / "job.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    return "job.yaml"


def shown(invoke: Invoke, file: str, kind: str, *options: str) -> tuple[Json, str]:
    done = invoke("submit", file, "--to", kind, "--dry-run", "--no-quota", *options)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), done.stderr


def at(path: str, value: Any) -> Any:
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{'-'.join(sorted(case.fields))}")
def test_a_smoke_run_is_one_short_task(home: Path, invoke: Invoke, case: Case) -> None:
    file = written(home, **case.fields)
    request, err = shown(invoke, file, case.kind, "--smoke", "--key", "k")
    body = request["body"]
    text = json.dumps(body)
    assert request["name"].startswith("digits-smoke-")
    assert variable(body, "ACCEL_SMOKE") == "1"
    assert {path: at(path, body) for path in case.has} == case.has
    assert [word for word in case.absent if word in text] == []
    assert "digits-smoke: a smoke run of digits: " in err and "600 s at most, no retries" in err
    assert all(word in err for word in case.said)
    if case.alike:
        whole, _ = shown(invoke, file, case.kind, "--key", "k")
        assert whole["key"] != request["key"] and "ACCEL_SMOKE" not in json.dumps(whole)


def test_the_task_of_a_sweep_has_the_first_parameters(home: Path, invoke: Invoke) -> None:
    for kind in ("aws-batch", "gke", "google-batch", "vertex"):
        file = written(home, sweep=GRID, **SIZE)
        request, _ = shown(invoke, file, kind, "--smoke")
        assert (variable(request["body"], "LR"), variable(request["body"], "SIZE")) == ("0.1", "32")


def test_its_key_is_nobody_elses() -> None:
    """Not even that of a job which somebody gave the same name."""
    job = smoke.of(Job(**JOB))
    assert submission_key(job.name, of_smoke("k")) != submission_key("digits-smoke", "k")
    assert len(smoke.of(Job(**{**JOB, "name": "d" * 100})).name) == 100


@pytest.mark.parametrize(("given", "own", "had"), [(None, "12h", 600), ("30m", "12h", 1800), ("30m", "5m", 300)])
def test_it_ends_early(home: Path, invoke: Invoke, given: str | None, own: str, had: int) -> None:
    file = written(home, **SIZE, timeout_s=own)
    more = ["--smoke-timeout", given] if given else []
    request, _ = shown(invoke, file, "aws-batch", "--smoke", *more)
    assert request["body"]["submit"]["timeout"] == {"attemptDurationSeconds": had}


@pytest.mark.parametrize(
    ("options", "fields", "line"),
    [
        (["--smoke-timeout", "5m"], {}, "error: --smoke-timeout: is of a smoke run, and --smoke is missing"),
        (["--smoke", "--then-to", "gke"], {}, "error: --then-to: a smoke run is tried once"),
        (
            ["--smoke"],
            {"tasks": 4, "aws_batch": {"depends_on": [{"job": "aws-batch:us-east-1/x", "type": "N_TO_N"}]}},
            "error: job.yaml:12: aws_batch.depends_on.0: N_TO_N is between tasks of two arrays",
        ),
        (["--smoke", "--smoke-timeout", "30s"], {}, "error: --smoke-timeout: must be at least 60 s, is 30"),
    ],
)
def test_what_it_cannot_be_of_is_one_line(
    home: Path, invoke: Invoke, options: list[str], fields: Json, line: str
) -> None:
    done = invoke("submit", written(home, **SIZE, **fields), "--to", "aws-batch", "--dry-run", "--no-quota", *options)
    assert done.exit_code == 2, done.output
    errors = [each for each in done.stderr.splitlines() if each.startswith("error:")]
    assert len(errors) == 1 and errors[0].startswith(line)
