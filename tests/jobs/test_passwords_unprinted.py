"""A law: a password that somebody wrote where none belongs is not printed, noted or drawn, whatever the command."""

import json
import shlex
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from accel.diagnostics.errors import JobsError
from jobs import api
from jobs.cli.main import VERBS
from jobs.model.job import Job
from tests.jobs.batch_target import BATCH
from tests.jobs.conftest import start
from tests.support.markers import FORMS, MARKER, planted

ON_GOOGLE: dict[str, Any] = {
    "schema": 1, "project": "p", "region": "us-central1", "bucket": "b",
    "service_account": "a@p.iam.gserviceaccount.com",
}  # fmt: skip
TARGETS: dict[str, Any] = {
    "gpu": {**BATCH, "claim_table": "t", "code_bucket": "code"},
    "vertex": {**ON_GOOGLE, "kind": "vertex"},
    "vm": {**ON_GOOGLE, "kind": "gce", "zones": ["us-central1-a"], "machine_types": ["g2-standard-4"], "network": "n",
           "subnetworks": {"us-central1": "s"}, "image": "projects/p/global/images/family/f", "disk_gib": 100},
    "here": {"kind": "local", "schema": 1, "root": "."},
}  # fmt: skip
JOB: dict[str, Any] = {
    "name": "train", "command": ["python3", "train.py"], "image": "i:1", "cpus": 1, "memory_mib": 100,
    "env": {"DATA": "x"}, "secrets": {"HF": "hf/versions/1"}, "labels": {"team": "a"},
    "accelerator": {"type": "l4"}, "mounts": [{"source": "gs://b", "path": "/b"}], "spot": "require",
    "sweep": {"grid": {"rate": ["0.1"]}}, "vertex": {"workers": {"command": ["x"]}},
    "google_batch": {"runnables": [{"script": "x"}]},
}  # fmt: skip
"""Fields of all kinds, whether they go together or not: refusals are printed too."""

Invoke = Callable[..., Result]


@pytest.fixture(autouse=True)
def clouds(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody answers."""
    (home / "targets.json").write_text(json.dumps(TARGETS))
    (home / "job.yaml").write_text("name: a\ncommand: ['true']\n")
    for name, value in {
        "ACCEL_TARGETS": "targets.json", "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_MAX_ATTEMPTS": "1",
        "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://someone:{MARKER}@127.0.0.1:1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)


def clean(result: Result, place: object) -> None:
    assert MARKER not in result.output + result.stderr, (place, result.output)
    assert result.exception is None or isinstance(result.exception, SystemExit), (place, result.exception)
    assert "this is a bug in accel" not in result.stderr, (place, result.stderr)


def test_in_a_job_file(home: Path, invoke: Invoke) -> None:
    for path, job, _ in planted(JOB):
        (home / "j.yaml").write_text(yaml.safe_dump(job))
        for line in (
            "validate j.yaml", "validate j.yaml --to here -o json", "submit j.yaml --to gpu --dry-run",
            "submit j.yaml --to vertex --dry-run", "submit j.yaml --to here --dry-run", "cost j.yaml --to gpu",
        ):  # fmt: skip
            clean(invoke(*shlex.split(line)), path)


@pytest.mark.parametrize("form", FORMS)
def test_in_any_field_of_a_job(form: str, home: Path, invoke: Invoke) -> None:
    right = {"name": "a", "command": ["true"]}
    for field in Job.model_fields:
        (home / "j.yaml").write_text(yaml.safe_dump({**right, field: form}))
        clean(invoke("validate", "j.yaml"), field)
        (home / "j.yaml").write_text(yaml.safe_dump({**right, field: {form: form}}))
        clean(invoke("validate", "j.yaml"), field)
        clean(invoke("submit", "job.yaml", "--to", "here", "--set", f"{field}={form}", "--dry-run"), field)


@pytest.mark.parametrize(
    "given",
    [f"passwrd={MARKER}", f"x.y={MARKER}", f"env.X_TOKEN={MARKER}", f"accelerator.key={MARKER}", f"cpuss={MARKER}",
     f"api_key={MARKER}"],
)  # fmt: skip
def test_in_an_override(given: str, invoke: Invoke) -> None:
    clean(invoke("submit", "job.yaml", "--to", "here", "--dry-run", "--set", given), given)


def test_in_variables_and_options_of_the_command(home: Path, invoke: Invoke) -> None:
    job = {
        "name": "a",
        "command": ["train", "--password", MARKER, f"--hf-token={MARKER}", f"HF_TOKEN={MARKER}", *FORMS],
        "env": {"HF_TOKEN": MARKER, "DATA": FORMS[0]},
    }
    (home / "j.yaml").write_text(yaml.safe_dump(job))
    for to in ("here", "gpu"):
        line = ("submit", "j.yaml", "--to", to, "--dry-run", "--set", "image=i:1", "--set", "cpus=1")
        result = invoke(*line, "--set", "memory_mib=100", "--env", f"MY_SECRET={MARKER}", "--env", f"B={FORMS[4]}")
        clean(result, to)
        assert result.exit_code == 0, result.output


def test_in_targets(home: Path, invoke: Invoke) -> None:
    (home / "j.yaml").write_text(yaml.safe_dump({**JOB, "cpus": 4, "memory_mib": 1000}))
    for path, targets, _ in planted(TARGETS):
        (home / "targets.json").write_text(json.dumps(targets))
        clean(invoke("targets"), path)
        clean(invoke("targets", "-o", "json"), path)
        clean(invoke("submit", "j.yaml", "--to", str(path[0]), "--dry-run"), path)
    (home / "targets.json").write_text(json.dumps({form: {"kind": form} for form in FORMS}))
    clean(invoke("targets"), "names")


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_in_arguments(verb: str, invoke: Invoke) -> None:
    for form in FORMS:
        for line in (
            [verb, form], [verb, form, form], [verb, "--to", form, "job.yaml"], ["--targets", form, verb, "job.yaml"],
            [verb, "-o", form], [verb, f"--{form}"], [verb, "job.yaml", "--key", form, "--name", form], [form],
            [verb, f"local:/{form}"], [verb, "job.yaml", "--timeout", form], [verb, "a", "--out", f"{form}.html"],
        ):  # fmt: skip
            if not (verb == "runtime" and "--out" in line):
                clean(invoke(*line), line)


@pytest.mark.parametrize(
    "line",
    ["targets --targets ssm:us-east-1/x", "get aws-batch:us-east-1/0f3c", "logs aws-batch:us-east-1/0f3c --debug",
     "explain aws-batch:us-east-1/0f3c", "cancel aws-batch:us-east-1/0f3c --yes", "ls --target gpu", "doctor",
     "submit job.yaml --to gpu --set image=i:1 --set cpus=1 --set memory_mib=100 --no-quota"],
)  # fmt: skip
def test_in_the_endpoint(line: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")  # click would write past a stream that cannot show everything
    done = start(*shlex.split(line))
    out, err = done.communicate(timeout=60)
    assert MARKER not in out + err, err
    assert "***" in out + err or line.startswith(("ls", "submit", "doctor")), err


@pytest.mark.parametrize("form", FORMS)
def test_in_what_a_function_raises(form: str) -> None:
    for job, to in (({"name": form, "command": ["true"]}, "here"), ({"name": "a", "command": ["true"]}, form)):
        with pytest.raises(JobsError) as fault:
            api.submit(job, to)
        assert MARKER not in "".join(traceback.format_exception(fault.value))


def test_in_what_a_job_says_as_it_fails(home: Path, tmp_path: Path, invoke: Invoke) -> None:
    program = f"import sys; sys.exit('cannot reach {FORMS[0]} with HF_TOKEN={MARKER}')"
    (home / "j.yaml").write_text(yaml.safe_dump({"name": "fails", "command": ["python3", "-c", program]}))
    made = invoke("submit", "j.yaml", "--to", "here", "--key", f"token={MARKER}")
    assert made.exit_code == 0, made.output
    ref = made.stdout.strip()
    for line in ("wait {}", "get {}", "get {} -o json", "explain {}", "explain {} -o json", "ls -o wide", "watch {}",
                 "report {} --out page.html", "report {} --out -", "cost {}", "doctor"):  # fmt: skip
        clean(invoke(*line.format(ref).split()), line)
    assert MARKER not in (home / "page.html").read_text()
    assert MARKER not in (tmp_path / "state" / "accel" / "history.jsonl").read_text()
    assert MARKER in invoke("logs", ref).stdout, "a job's log is its owner's own, and is shown as it is"
