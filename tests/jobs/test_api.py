"""The functions for Python, on jobs of this machine: they do what the verbs do, and neither print nor exit."""

from __future__ import annotations

import ast
import asyncio
import copy
import inspect
import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from click.testing import Result

import jobs
from accel.diagnostics import errors
from jobs import Accelerator, Job, aio, get, list_targets, ls, submit, submit_many, wait
from tests.jobs.batch_target import BATCH
from tests.jobs.calling import HELLO, LONG, WAIT_S
from tests.jobs.code.projects import project
from tests.jobs.conftest import ROOT

Invoke = Callable[..., Result]

GROUND = {"schema": 1, "project": "p", "region": "us-central1", "service_account": "a@p", "bucket": "b"}
TARGETS: dict[str, Any] = {
    "gpu": {**BATCH, "claim_table": "t", "code_bucket": "code"},
    "calm": {**BATCH, "claim_table": "t", "environments": [{**BATCH["environments"][0], "capacity": "on-demand"}]},
    "batch": {**GROUND, "kind": "google-batch", "network": "n", "subnetwork": "s"},
    "vertex": {**GROUND, "kind": "vertex"},
}
SMALL: dict[str, Any] = {"name": "small", "image": "i:1", "command": ["python3", "t.py"], "cpus": 1, "memory_mib": 100}

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def targets(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (home / "targets.json").write_text(json.dumps(TARGETS))
    monkeypatch.setenv("ACCEL_TARGETS", str(home / "targets.json"))
    return home


# --- what is imported


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = "import jobs, sys; print({'pydantic', 'click', 'yaml', 'boto3', 'asyncio'} & set(sys.modules), dir(jobs))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("set() ") and "'submit_many'" in done.stdout


@pytest.mark.parametrize("name", jobs.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(jobs, name) is not None


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match="'submits'"):
        jobs.submits  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ImportError, match="submits"):
        from jobs import submits  # noqa: F401  # pyright: ignore[reportAttributeAccessIssue, reportUnusedImport]


@pytest.mark.slow
def test_types_are_those_of_a_strict_program(tmp_path: Path) -> None:
    settings = {"include": ["user.py"], "extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}
    settings |= {"venvPath": str(Path(sys.prefix).parent), "venv": Path(sys.prefix).name, "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    (tmp_path / "user.py").write_text((ROOT / "tests/jobs/api_user.py").read_text())
    pyright = Path(sys.executable).with_name("pyright")
    done = subprocess.run([pyright], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip() == "0 errors, 0 warnings, 0 informations", done.stdout + done.stderr


# --- a job


def test_the_parameters_of_a_job_are_its_fields() -> None:
    source = ast.parse(inspect.getsource(inspect.getmodule(Job)))  # pyright: ignore[reportArgumentType]
    (written,) = [each for each in ast.walk(source) if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    names = [argument.arg for argument in written.args.kwonlyargs]
    assert names == list(Job.model_fields)
    required = [name for name, default in zip(names, written.args.kw_defaults, strict=True) if default is None]
    assert required == [name for name, field in Job.model_fields.items() if field.is_required()]


@pytest.mark.parametrize(
    "fields",
    [
        {"accelerator": {"type": "l4", "count": 1.5}},
        {"commands": ["x"]},
        {"timeout_s": "4 days"},
        {"nodes": 2, "tasks": 2},
        {"spot": "sometimes", "cpus": 0},
        {"env": {"AWS_BATCH_X": "1"}, "mounts": [{"source": "gs://a"}]},
        {"sweep": {"grid": {"A": ["1"], "B": []}}},
    ],
)
def test_bad_fields_are_refused_with_the_words_of_a_file(fields: dict[str, Any], home: Path) -> None:
    (home / "j.yaml").write_text(yaml.safe_dump(HELLO | fields))
    with pytest.raises(errors.BadInputs) as of_file:
        Job.read("j.yaml")
    with pytest.raises(errors.BadInputs) as of_fields:
        Job(**HELLO | fields)
    without_place = [line.split(": ", 1)[1] for line in of_file.value.messages]
    assert sorted(f"Job: {line}" for line in without_place) == sorted(of_fields.value.messages)
    assert of_fields.value.exit_code == 2
    with pytest.raises(errors.BadInputs) as of_submit:
        submit(HELLO | fields)
    assert sorted(of_submit.value.messages) == sorted(of_fields.value.messages)


def test_a_part_is_refused_by_its_own_name() -> None:
    with pytest.raises(errors.BadInput, match=r"^Accelerator: count: must be at least 1, is 0$"):
        Accelerator(count=0)


def test_a_job_is_read_changed_and_kept(home: Path) -> None:
    (home / "j.yaml").write_text(yaml.safe_dump(HELLO | {"sweep": {"grid": {"LR": ["1", "2"]}}}))
    (home / "many.yaml").write_text(f"{yaml.safe_dump(HELLO)}---\n{yaml.safe_dump(LONG)}")
    job = Job.read(home / "j.yaml")
    assert (job.tasks, job.but(sweep={"grid": {"LR": ["1", "2", "3"]}}).tasks) == (2, 3)
    assert job.but(env={"A": 1}).env == {"A": "1"} and job.env == {}
    assert [each.name for each in Job.read_all("many.yaml")] == ["hello", "long"]
    assert copy.deepcopy(job) == job == Job.read("j.yaml")
    with pytest.raises(errors.BadInputs, match=r"^Job: cpus: must be an integer"):
        job.but(cpus="four")
    with pytest.raises(errors.NotFound, match="no such file"):
        Job.read("no.yaml")


# --- what is sent


def jobs_here() -> list[dict[str, Any]]:
    """Jobs that differ in what the targets make of them."""
    return [
        SMALL,
        {**SMALL, "accelerator": {"type": "a10g", "count": 1}, "env": {"EPOCHS": 3, "API_TOKEN": "hush"}, "retries": 2},
        {**SMALL, "sweep": {"grid": {"LR": ["0.1", "0.2"], "SEED": ["1", "2"]}}, "parallelism": 2, "timeout_s": "4h"},
        {**SMALL, "spot": True, "lost_retries": 3, "labels": {"team": "nlp"}},
        {**SMALL, "tasks": 3, "aws_batch": {"scheduling_priority": 2}},
    ]


@pytest.mark.parametrize("to", ["gpu", "batch", "local"])
@pytest.mark.parametrize("number", range(len(jobs_here())))
@pytest.mark.filterwarnings("ignore::accel.diagnostics.errors.JobWarning")
def test_the_request_is_that_of_the_command(number: int, to: str, targets: Path, invoke: Invoke) -> None:
    """As a file, as fields, and as a Job; and refused in the same words where it is."""
    fields = jobs_here()[number] | ({"image": "local/work"} if to == "local" else {})
    (targets / "j.yaml").write_text(yaml.safe_dump(fields, sort_keys=False))
    told = invoke("submit", "j.yaml", "--to", to, "--dry-run", "--targets", str(targets / "targets.json"))
    for work in ("j.yaml", Path("j.yaml"), fields, Job.read("j.yaml"), Job(**fields)):
        if told.exit_code:
            with pytest.raises(errors.BadInputs) as refused:
                submit(work, to, dry_run=True)
            lines = [line.removeprefix("error: ") for line in told.stderr.splitlines() if line.startswith("error: ")]
            places = {"Job", *(line.split(": ")[0] for line in lines)}
            assert [line.split(": ", 1)[1] for line in lines] == [
                line.split(": ", 1)[1] for line in refused.value.messages if line.split(": ")[0] in places
            ]
        else:
            assert submit(work, to, dry_run=True) == json.loads(told.stdout)


def test_every_target_took_some(targets: Path) -> None:
    """Or the test above would compare refusals alone."""
    for to in TARGETS:
        assert submit(SMALL, to, dry_run=True)["target"] == to


@pytest.mark.parametrize(
    "options, words",
    [
        ({"key": "run-17"}, ["--key", "run-17"]),
        ({"smoke": True, "smoke_timeout": 90}, ["--smoke", "--smoke-timeout", "90s"]),
        ({"code": "code"}, ["--code", "code"]),
        ({"code": Path("code"), "code_all": True, "key": "k"}, ["--code", "code", "--code-all", "--key", "k"]),
        ({"quota": False, "targets": "targets.json"}, ["--no-quota", "--targets", "targets.json"]),
    ],
)
def test_options_mean_the_same(options: dict[str, Any], words: list[str], targets: Path, invoke: Invoke) -> None:
    project(targets / "code", {"train.py": "print(1)\n"})
    (targets / "j.yaml").write_text(yaml.safe_dump(SMALL))
    told = invoke("submit", "j.yaml", "--to", "gpu", "--dry-run", *words)
    assert submit("j.yaml", "gpu", dry_run=True, **options) == json.loads(told.stdout), told.stderr


@pytest.mark.parametrize(
    "options, words",
    [
        ({"code_all": True}, ["--code-all"]),
        ({"smoke_timeout": 90}, ["--smoke-timeout", "90s"]),
        ({"to": "cpu"}, ["--to", "cpu"]),
        ({"to": None}, []),
        ({"targets": "none.json"}, ["--targets", "none.json"]),
    ],
)
def test_errors_are_those_of_the_command(
    options: dict[str, Any], words: list[str], targets: Path, invoke: Invoke
) -> None:
    (targets / "j.yaml").write_text(yaml.safe_dump(SMALL))
    to = [] if "to" in options else ["--to", "gpu"]
    told = invoke("submit", "j.yaml", *to, "--dry-run", *words)
    given: dict[str, Any] = {"to": "gpu"} | options
    with pytest.raises(errors.JobsError) as refused:
        submit("j.yaml", **given)
    assert (f"error: {refused.value.message}", refused.value.exit_code) == (told.stderr.splitlines()[0], told.exit_code)


def test_an_option_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="no option keys; it has key, code"):
        submit(HELLO, keys="x")  # pyright: ignore[reportCallIssue]


WRONG_TYPES: list[tuple[Callable[[], object], str]] = [
    (lambda: submit(cast(Any, 5)), "job: must be a path, is 5"),
    (lambda: submit(cast(Any, [HELLO])), "job: must be a path, is a list"),
    (lambda: submit(HELLO, cast(Any, ["gpu"])), "to: must be text, is a list"),
    (lambda: submit(HELLO, "gpu", key=cast(Any, 17)), "key: must be text, is 17"),
    (lambda: submit(HELLO, "gpu", then_to=cast(Any, 1)), "then_to: must be text, is 1"),
    (lambda: submit(HELLO, "gpu", targets=cast(Any, Path("t.json"))), "targets: must be text, is of type PosixPath"),
    (lambda: submit(HELLO, "gpu", code=cast(Any, True)), "code: must be a path, is true"),
    (lambda: submit(HELLO, "gpu", code="a\0b"), "code: must be a path, is 'a\\x00b'"),
    (lambda: submit(HELLO, "gpu", requirements=cast(Any, [])), "requirements: must be a path, is a list"),
    (lambda: submit(HELLO, "gpu", smoke=True, smoke_timeout=cast(Any, "5m")), "smoke_timeout: must be a whole number"),
    (lambda: submit_many(cast(Any, 5)), "jobs: must be a list of jobs, is 5"),
    (lambda: submit_many(cast(Any, {"name": "a"})), "jobs: must be a list of jobs, is a mapping"),
    (lambda: submit_many([HELLO], "gpu", rate=0), "rate: must be at least 1, is 0"),
    (lambda: submit_many([HELLO], "gpu", rate=cast(Any, 1.5)), "rate: must be a whole number, is 1.5"),
    (lambda: wait(cast(Any, None)), "jobs: must be a job or a list of jobs, is empty"),
    (lambda: wait(cast(Any, [5])), "job: must be a job or its reference, is 5"),
    (lambda: wait([], timeout=cast(Any, "10m")), "timeout: must be a number of seconds, is '10m'"),
    (lambda: wait([], timeout=float("nan")), "timeout: must be a number of seconds, is nan"),
    (lambda: get(cast(Any, HELLO)), "job: must be a job or its reference, is a mapping"),
    (lambda: get("local:/gone").wait(cast(Any, "10m")), "timeout: must be a number of seconds, is '10m'"),
    (lambda: get("local:/gone").logs(tail=cast(Any, "5")), "tail: must be a whole number, is '5'"),
    (lambda: get("local:/gone").logs(task=cast(Any, "0")), "task: must be a whole number, is '0'"),
    (lambda: ls(cast(Any, 5)), "to: must be text, is 5"),
    (lambda: ls(limit=-1), "limit: must be at least 1, is -1"),
    (lambda: ls(limit=10**30), "limit: must be at most 2147483647, is 1000000000000000000000000000000"),
    (lambda: list_targets(cast(Any, Path("t.json"))), "source: must be text, is of type PosixPath"),
    (lambda: Job.read(cast(Any, None)), "path: must be a path, is empty"),
    (lambda: Job.read_all(cast(Any, b"j.yaml")), "path: must be a path, is of type bytes"),
    (lambda: asyncio.run(aio.wait(cast(Any, 5))), "jobs: must be a job or a list of jobs, is 5"),
    (lambda: asyncio.run(aio.status(cast(Any, 5))), "job: must be a job or its reference, is 5"),
]


@pytest.mark.parametrize(("call", "said"), WRONG_TYPES, ids=[said for _, said in WRONG_TYPES])
def test_an_argument_of_another_type_is_refused(call: Callable[[], object], said: str, targets: Path) -> None:
    with pytest.raises(errors.BadInput) as refused:
        call()
    assert refused.value.message.startswith(said)


def test_a_sweep_that_is_many_jobs(targets: Path, invoke: Invoke) -> None:
    several = {**SMALL, "sweep": {"list": [{"LR": "1"}, {"LR": "2"}]}}
    with pytest.raises(errors.BadInput, match="job of its own there, 2 in all: use submit_many"):
        submit(several, "vertex", dry_run=True)
    (targets / "j.yaml").write_text(yaml.safe_dump(several))
    told = json.loads(invoke("submit", "j.yaml", "--to", "vertex", "--dry-run").stdout)
    assert submit_many([several], "vertex", dry_run=True) == told and len(told) == 2


def test_a_sweep_of_many_jobs_says_that_nothing_caps_it(targets: Path, invoke: Invoke) -> None:
    several = {**SMALL, "sweep": {"grid": {"LR": ["1", "2", "3", "4", "5"]}}}
    (targets / "j.yaml").write_text(yaml.safe_dump(several))
    told = invoke("submit", "j.yaml", "--to", "vertex", "--dry-run").stderr
    assert "warning: parallelism: is missing, and all 5 tasks of the sweep may run at once; each is a job" in told
    with pytest.warns(errors.JobWarning, match="all 5 tasks of the sweep may run at once"):
        submit_many([several], "vertex", dry_run=True)


# --- warnings

UNUSED = {**HELLO, "aws_batch": {"scheduling_priority": 2}}


def test_a_warning_is_pythons_and_kept() -> None:
    with pytest.warns(errors.JobWarning, match="aws_batch: is for targets of kind aws-batch") as told:
        run = submit(UNUSED)
    assert told[0].filename == __file__
    assert run.warnings == (str(told[0].message),)
    run.wait(WAIT_S)


@pytest.mark.parametrize("how", ["strict", "filter"])
def test_a_warning_may_be_refused_before_anything_is_sent(how: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.JobWarning)
        with pytest.raises(errors.BadInput if how == "strict" else errors.JobWarning, match="aws_batch: is for"):
            submit(UNUSED, strict=how == "strict")
    assert ls(ended=True) == []


def test_a_warning_from_deep_inside_names_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(pairs: object, reporter: Any) -> list[str]:
        reporter.warn("quota: no instance can start")
        return []

    monkeypatch.setattr("jobs.client.dispatch.check_quotas", asked)
    with pytest.warns(errors.JobWarning, match="no instance can start") as told:
        run = submit(HELLO)
    assert told[0].filename == __file__ and run.warnings == ("quota: no instance can start",)
    run.wait(WAIT_S)
    submit(HELLO, quota=False).wait(WAIT_S)


def test_what_is_done_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "accel.jobs"):
        run = submit(HELLO)
        run.wait(WAIT_S)
    assert f"{run}: SUCCEEDED" in caplog.messages


def test_a_job_with_a_deadline_says_who_moves_it(targets: Path, invoke: Invoke) -> None:
    job = {**SMALL, "spot": "prefer", "deadline": "8h", "work_s": "1h"}
    with pytest.warns(errors.JobWarning, match="moves to on demand only while `accel-jobs tend REF"):
        told = submit(job, "gpu", then_to="calm", dry_run=True)
    (targets / "j.yaml").write_text(yaml.safe_dump(job))
    assert told == json.loads(invoke("submit", "j.yaml", "--to", "gpu", "--then-to", "calm", "--dry-run").stdout)
    with pytest.raises(errors.BadInput, match="then_to: is for a job with spot: prefer"):
        submit(SMALL, "gpu", then_to="calm", dry_run=True)
