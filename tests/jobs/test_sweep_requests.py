"""Sweeps as requests of every backend: golden files, each task's environment run for real, and some tasks again."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel.diagnostics.errors import BadInputs
from jobs.backends.aws_batch.request import render as aws_render
from jobs.backends.base import Request
from jobs.model import sweep_tasks
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key
from tests.jobs.backends import (
    aws_batch_target,
    gce_target,
    gke_target,
    google_batch_target,
    tpu_target,
    vertex_jobs,
)
from tests.support.golden import check_request

GOLDEN = Path(__file__).parents[1] / "golden" / "sweeps"
SWEEP: dict[str, Any] = {
    "grid": {"LR": ["0.1", "0.01"], "NOTE": ["a b", "$(x)", "${BATCH_TASK_INDEX}"]},
    "objective": {"metric": "accuracy", "best": "max"},
}
SHOW = ["env", "-0"]
SIZE = {"cpus": 2, "memory_mib": 4000}


def aws(**fields: Any) -> Request:
    job = Job(**{"name": "digits", "image": "registry.example/other:1.0", **SIZE, **fields})
    key = submission_key(job.name, "golden")
    return aws_render(job, platform_name(job.name, key), key, "gpu", aws_batch_target.make_target())


def gke(**fields: Any) -> Request:
    return gke_target.make_request(**{**SIZE, **fields})


def batch(**fields: Any) -> Request:
    return google_batch_target.make_request(**fields)


def of_aws(body: dict[str, Any]) -> tuple[list[str], dict[str, str], int]:
    submit = body["submit"]
    overrides = submit["containerOverrides"]
    return (
        overrides["command"],
        {each["name"]: each["value"] for each in overrides["environment"]},
        submit.get("arrayProperties", {"size": 1})["size"],
    )


def of_gke(body: dict[str, Any]) -> tuple[list[str], dict[str, str], int]:
    """As Kubernetes reads it: $$ is one $."""
    spec = body["objects"][-1]["spec"]
    container = spec["template"]["spec"]["containers"][0]
    env = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    return [word.replace("$$", "$") for word in container["command"]], env, spec["completions"]


def of_batch(body: dict[str, Any]) -> tuple[list[str], dict[str, str], int]:
    (group,) = body["job"]["taskGroups"]
    container = group["taskSpec"]["runnables"][0]["container"]
    argv = [container["entrypoint"], *container["commands"]]
    return argv, group["taskSpec"]["environment"]["variables"], int(group["taskCount"])


Read = Callable[[dict[str, Any]], tuple[list[str], dict[str, str], int]]
BACKENDS: dict[str, tuple[Callable[..., Request], Read, str]] = {
    "aws-batch": (aws, of_aws, "AWS_BATCH_JOB_ARRAY_INDEX"),
    "gke": (gke, of_gke, "JOB_COMPLETION_INDEX"),
    "google-batch": (batch, of_batch, "BATCH_TASK_INDEX"),
}
ARRAYS = pytest.mark.parametrize("kind", list(BACKENDS))


def ran(kind: str, body: dict[str, Any], place: int) -> dict[str, str]:
    """The environment of a task's program, by the request alone."""
    argv, env, _ = BACKENDS[kind][1](body)
    own = {BACKENDS[kind][2]: str(place)} if env["ACCEL_TASK_INDEX_FROM"] == BACKENDS[kind][2] else {}
    done = subprocess.run(
        argv, env={"PATH": os.environ["PATH"], **env, **own}, capture_output=True, text=True, check=True
    )
    parts = (line.partition("=") for line in done.stdout.split("\0") if line)
    return {name: value for name, _, value in parts}


@ARRAYS
def test_golden(kind: str) -> None:
    request = BACKENDS[kind][0](command=["python", "train.py"], sweep=SWEEP)
    check_request(GOLDEN / f"{kind}.json", request)


@ARRAYS
@pytest.mark.parametrize(
    "sweep",
    [
        SWEEP,
        {"list": [{"LR": "1", "NOTE": "'"}, {"LR": "2", "NOTE": "\\"}]},
        {"random": {"LR": {"log": ["1e-4", "1"]}, "NOTE": {"choice": ["x", "y"]}}, "count": 5},
        {"grid": {"LR": ["0.5"], "NOTE": ["alone"]}},
    ],
    ids=["grid", "list", "random", "one"],
)
def test_each_task_of_a_request_has_its_parameters(kind: str, sweep: dict[str, Any]) -> None:
    request = BACKENDS[kind][0](command=SHOW, sweep=sweep, env={"OWN": "1"})
    found = sweep_tasks.find_sweep(request.body)
    assert found
    assert BACKENDS[kind][1](request.body)[2] == len(found.places)
    for place in {0, len(found.places) - 1}:
        env = ran(kind, request.body, place)
        assert {name: env[name] for name in ("LR", "NOTE")} == found.params(place)
        assert (env["OWN"], env["ACCEL_TASK_INDEX"]) == ("1", str(place))


def at_once(kind: str, body: dict[str, Any]) -> int | None:
    """The tasks that a request lets run at once; None where it does not say."""
    if kind == "gke":
        return body["objects"][-1]["spec"]["parallelism"]
    return body["job"]["taskGroups"][0].get("parallelism") if kind == "google-batch" else None


@ARRAYS
def test_a_sweep_without_parallelism_is_capped_or_says_that_it_is_not(kind: str) -> None:
    grid = {"grid": {"LR": [str(number) for number in range(16)]}}
    request = BACKENDS[kind][0](command=["python", "train.py"], sweep=grid)
    (warning,) = [line for line in request.warnings if line.startswith("parallelism: ")]
    if kind == "google-batch":
        assert at_once(kind, request.body) == 4
        assert warning == (
            "parallelism: is missing, and 4 of the sweep's 16 tasks run at once on google-batch; write parallelism: 16 "
            "for all of them"
        )
    else:
        assert "all 16 tasks of the sweep may run at once" in warning
    told = BACKENDS[kind][0](command=["python", "train.py"], sweep=grid, parallelism=16)
    assert not [line for line in told.warnings if line.startswith("parallelism")]
    assert at_once(kind, told.body) in (16, None)


@ARRAYS
def test_what_runs_no_more_tasks_than_the_cap_is_not_warned_of(kind: str) -> None:
    made = {
        "sweep": {"sweep": {"grid": {"LR": ["1", "2", "3", "4"]}}},
        "tasks": {"tasks": 16},  # tasks that are no sweep stay as they were
    }
    for fields in made.values():
        request = BACKENDS[kind][0](command=["python", "train.py"], **fields)
        assert not [line for line in request.warnings if line.startswith("parallelism")]


@ARRAYS
def test_without_a_shell_the_command_stays_and_the_sweep_is_told(kind: str) -> None:
    request = BACKENDS[kind][0](command=["python", "t.py"], sweep={**SWEEP, "shell": False})
    argv, env, size = BACKENDS[kind][1](request.body)
    assert (argv, size) == (["python", "t.py"], 6)
    assert json.loads(env["ACCEL_SWEEP"])["grid"] == SWEEP["grid"]


def test_what_aws_would_not_take_is_refused_before_it_is_sent() -> None:
    random = {"random": {f"P{number}": {"uniform": ["0", "1"]} for number in range(6)}, "count": 500}
    with pytest.raises(BadInputs, match=r"characters of overrides .* sweep\.shell: false"):
        aws(command=["python", "t.py"], sweep=random)
    assert aws(command=["python", "t.py"], sweep={**random, "shell": False}).body["submit"]["arrayProperties"] == {
        "size": 500
    }
    many = {"grid": {name: [str(number) for number in range(22)] for name in "ABC"}}
    with pytest.raises(BadInputs, match="10000, is 10648"):
        aws(command=["python", "t.py"], sweep=many)


@pytest.mark.parametrize(
    "render, kind",
    [(vertex_jobs.make_request, "vertex"), (gce_target.make_request, "gce"), (tpu_target.make_request, "tpu-vm")],
)
def test_where_a_job_runs_one_task_each_of_a_sweep_is_a_job(render: Callable[..., Request], kind: str) -> None:
    fields: dict[str, Any] = {"command": ["python", "t.py"]}
    with pytest.raises(BadInputs, match="sweep: each of its tasks is a job of its own here"):
        render(**fields, sweep={"grid": {"A": ["1"]}})
    whole = Job.model_validate({"name": "digits", "image": "local/examples", **fields, "sweep": SWEEP})
    parts = sweep_tasks.apart(whole, kind)
    assert len(parts) == 6
    request = render(**fields, env={"OWN": "1"})
    told = [sweep_tasks.find_sweep({"env": part.env}) for part in parts]
    assert [each.places[0] for each in told if each] == list(range(6))
    assert sweep_tasks.find_sweep(request.body) is None
