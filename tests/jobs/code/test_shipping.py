"""`submit --code` as a user gives it, without a cloud: what is rendered, refused and told."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from accel.contract.targets import AwsBatchTarget, read_one
from accel.diagnostics.errors import BadInput, BadInputs
from jobs.backends.aws_batch import AwsBatchBackend
from jobs.client.code.inside import program
from jobs.client.code.shipping import S3, CloudStorage, Shipping, of_target
from jobs.model.job import Job
from tests.jobs.batch_target import BATCH
from tests.jobs.code.projects import git, project

GROUND = {"schema": 1, "project": "p", "region": "us-central1", "service_account": "a@p", "bucket": "b"}
TARGETS: dict[str, Any] = {
    "gpu": {**BATCH, "claim_table": "t", "code_bucket": "code"},
    "older": BATCH,
    "vertex": {**GROUND, "kind": "vertex"},
}

Invoke = Callable[..., Result]


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a job file beside it; without a command where a test takes it out."""
    (home / "targets.json").write_text(json.dumps(TARGETS))
    monkeypatch.setenv("ACCEL_TARGETS", str(home / "targets.json"))
    write(home)
    return project(home / "code", {"train.py": "print('first')\n"})


def write(home: Path, **fields: Any) -> None:
    job = {"name": "train", "command": ["python3", "train.py"], "image": "i:1", "cpus": 1, "memory_mib": 100, **fields}
    (home / "job.yaml").write_text(yaml.safe_dump({name: value for name, value in job.items() if value is not None}))


def dry(invoke: Invoke, *more: str) -> tuple[dict[str, Any], str]:
    result = invoke("submit", "job.yaml", "--to", "gpu", "--code", "code", "--dry-run", *more)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), result.stderr


def test_a_dry_run_shows_the_digest_and_sends_nothing(folder: Path, invoke: Invoke) -> None:
    request, said = dry(invoke)
    command = request["body"]["submit"]["containerOverrides"]["command"]
    digest = command[4]
    assert command[:3] == ["python3", "-c", program("s3")]
    assert command[3] == f"s3://us-east-1/code/accel-jobs/code/{digest}.tar.gz"
    assert command[6:] == ["-", "python3", "train.py"]
    assert re.match(r"code: 1 file, 15 B; with accel_runtime \d\d\.\d KiB compressed, SHA-256 ", said)
    assert f"SHA-256 {digest}; largest: train.py 15 B" in said


def test_other_code_is_another_job(folder: Path, invoke: Invoke) -> None:
    first, _ = dry(invoke, "--key", "k")
    assert dry(invoke, "--key", "k")[0] == first
    (folder / "train.py").write_text("print('second')\n")
    second, _ = dry(invoke, "--key", "k")
    assert second["key"] != first["key"] and second["name"] != first["name"]


def test_time_and_owner_and_order_do_not_change_it(folder: Path) -> None:
    (folder / "b.py").write_text("b")
    first = Shipping.of(folder).archive.digest
    git(folder, "add", "b.py")
    (folder / "train.py").touch()
    assert Shipping.of(folder).archive.digest == first
    (folder / "b.py").chmod(0o755)
    assert Shipping.of(folder).archive.digest != first


@pytest.mark.parametrize(
    ("fields", "more", "line"),
    [
        ({"command": None}, ["--to", "gpu"], "command: is missing, and with --code the command has to be known here"),
        ({}, ["--to", "older"], "--code: target older has no bucket for code"),
        (
            {"vertex": {"workers": {"args": ["x"]}}, "accelerator": {"type": "l4"}},
            ["--to", "vertex"],
            "vertex.workers.args: is for an image's own program, and with --code the command has to be known here",
        ),
    ],
)
def test_what_cannot_be_done(folder: Path, invoke: Invoke, fields: Any, more: list[str], line: str) -> None:
    write(folder.parent, **fields)
    result = invoke("submit", "job.yaml", "--code", "code", "--dry-run", *more)
    assert result.exit_code == 2
    assert line in result.stderr


def test_code_all_is_for_code(folder: Path, invoke: Invoke) -> None:
    result = invoke("submit", "job.yaml", "--to", "gpu", "--code-all", "--dry-run")
    assert (result.exit_code, result.stderr) == (2, "error: --code-all: is for --code FOLDER, which is not given\n")


def test_a_secret_stays_here(folder: Path, invoke: Invoke) -> None:
    (folder / ".env").write_text("TOKEN=x")
    (folder / "sa.json").write_text(
        '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----\\n"}'
    )
    first, said = dry(invoke, "--key", "k")
    assert "warning: --code: .env: looks like a secret, and is left out" in said
    assert "warning: --code: sa.json: holds a private key, and is left out" in said
    strict = invoke("submit", "job.yaml", "--to", "gpu", "--code", "code", "--dry-run", "--strict")
    assert strict.exit_code == 2 and "error: --code: .env: looks like a secret" in strict.stderr
    (folder / ".env").unlink()
    (folder / "sa.json").unlink()
    assert dry(invoke, "--key", "k")[0] == first, "the archive is the same without them"


def test_pools_of_vertex_with_commands_of_their_own_fetch_it_too(folder: Path) -> None:
    shipping = Shipping.of(folder)
    pools = {"workers": {"command": ["python3 w.py --x 'a b'"]}, "evaluators": {"machine_type": "n1-standard-4"}}
    job = Job.model_validate({"name": "j", "command": ["python3 m.py"], "vertex": pools})
    ready = shipping.with_code(job, "vertex", read_one(TARGETS["vertex"]), "j-1")
    assert ready.command[-2:] == ["python3", "m.py"]
    assert ready.vertex and ready.vertex.workers and ready.vertex.evaluators
    assert ready.vertex.workers.command[-4:] == ["python3", "w.py", "--x", "a b"]
    assert ready.vertex.workers.command[:7] == ready.command[:7] and ready.vertex.evaluators.command == []


def test_what_was_sent_is_told_by_its_address(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipping = Shipping.of(folder)
    shipping.stores = {name: of_target(name, read_one(TARGETS[name])) for name in ("gpu", "vertex")}
    for kind in (S3, CloudStorage):
        monkeypatch.setattr(kind, "put", lambda store, archive: True)
    digest = shipping.archive.digest
    assert shipping.send() == [
        f"code {digest[:12]}: sent to s3://code/accel-jobs/code/{digest}.tar.gz",
        f"code {digest[:12]}: sent to gs://b/accel-jobs/code/{digest}.tar.gz",
    ]


def test_a_job_with_code_leaves_room_in_its_request(folder: Path) -> None:
    """ECS takes 8192 characters: what is left is the user's own."""
    target = AwsBatchTarget.model_validate(TARGETS["gpu"])
    shipping = Shipping.of(folder)
    room = 2_000
    for length, fits in ((room, True), (room + 1_500, False)):
        values = {"name": "j", "image": "i:1", "cpus": 1, "memory_mib": 100, "command": ["x" * length]}
        job = shipping.with_code(Job.model_validate(values), "gpu", target, "j-1")
        backend = AwsBatchBackend("gpu", target)
        if fits:
            assert not [line for line in backend.render(job, "j-1", "0" * 64).warnings if "overrides" in line]
        else:
            with pytest.raises(BadInputs, match="ECS takes 8192"):
                backend.render(job, "j-1", "0" * 64)


def test_a_job_that_goes_on_elsewhere_with_its_command_needs_one_bucket(folder: Path) -> None:
    shipping = Shipping.of(folder)
    gpu, vertex = read_one(TARGETS["gpu"]), read_one(TARGETS["vertex"])
    shipping.reach_both("gpu", gpu, "gpu-2", gpu)
    with pytest.raises(BadInput, match="--code: vertex has another bucket for code than gpu"):
        shipping.reach_both("gpu", gpu, "vertex", vertex)


def test_then_to_gets_a_command_of_its_own(folder: Path) -> None:
    shipping = Shipping.of(folder)
    job = Job.model_validate({"name": "j", "command": ["python3", "train.py"]})
    commands = [shipping.with_code(job, name, read_one(TARGETS[name]), "j-1").command for name in ("gpu", "vertex")]
    assert [command[3].partition(":")[0] for command in commands] == ["s3", "gs"]
    assert sorted(shipping.stores) == ["gpu", "vertex"], "it is sent to both"
