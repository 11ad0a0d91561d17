"""Allowances on the real engine: the ledger is made, named in every target, and `jobs` holds against it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from accel.contract import allowances as columns
from accel.contract.allowances import Allowances
from accel.diagnostics import errors
from jobs import submit
from jobs.cli.main import jobs as command
from jobs.client.allowances.ledgers import address, ledger_at
from jobs.client.allowances.reservation import Balance, Change, Hold, Ledger
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment, put

JOB = """
name: {name}
image: local/examples
command: [python, -c, "print('hello')"]
timeout_s: {timeout_s}
retries: 0
"""
UNBOUNDED = "name: unbounded\nimage: local/other\ncommand: [python]\ncpus: 1\nmemory_mib: 512\n"
Jobs = Callable[..., str]


@pytest.fixture(scope="module")
def stack(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    values = environment("sandbox")
    teams = {values["owner"]: {"usd": 20}, "vision": {"usd": 0.000001}}
    found = Stack(tmp_path_factory.mktemp("stack"), sandbox, put("allowances", {"teams": teams}, values))
    (found.folder / "outputs.json").write_text(json.dumps(found.up().outputs))
    yield found
    found.destroy()


@pytest.fixture
def outputs(stack: Stack) -> dict[str, Any]:
    return json.loads((stack.folder / "outputs.json").read_text())


@pytest.fixture
def jobs(stack: Stack, outputs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """The command in this process, on the stack's targets, with a history of its own."""
    (tmp_path / "targets.json").write_text(json.dumps(outputs["targets"]))
    variables = {**stack.variables, "ACCEL_TARGETS": str(tmp_path / "targets.json")}
    variables |= {name: str(tmp_path / name) for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    def call(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(command, arguments, prog_name="jobs")
        assert done.exit_code == code, done.output
        return done.stderr if code else done.stdout.strip()

    return call


@pytest.fixture
def ledger(jobs: Jobs, outputs: dict[str, Any]) -> Ledger:
    return ledger_at(address(Allowances.model_validate(outputs["allowances"])))


@pytest.fixture
def owner(outputs: dict[str, Any]) -> str:
    return outputs["allowances"]["default_team"]


def job(folder: Path, name: str, *, timeout_s: int = 3600, more: str = "") -> str:
    path = folder / f"{name}.yaml"
    path.write_text(JOB.format(name=name, timeout_s=timeout_s) + more)
    return str(path)


def of(ledger: Ledger, owner: str, ref: str) -> Hold:
    (found,) = [each for each in ledger.holds(owner) if each.ref == ref]
    return found


def test_the_ledger_is_promised_in_every_target(outputs: dict[str, Any], owner: str, sandbox: Sandbox) -> None:
    promised = outputs["allowances"]
    assert promised["teams"].keys() == {owner, "vision"}
    assert all(target["allowances"] == promised for target in outputs["targets"].values())
    table = sandbox.client("dynamodb").describe_table(TableName=promised["ledger"]["table"])["Table"]
    assert {key["AttributeName"] for key in table["KeySchema"]} == {columns.TEAM, columns.ENTRY}


def test_a_job_is_held_for_and_settled_when_it_was_waited_for(
    jobs: Jobs, ledger: Ledger, owner: str, tmp_path: Path
) -> None:
    submit = ("submit", job(tmp_path, "held"), "--to", "gpu", "--key", "one", "-o", "id")
    ref = jobs(*submit)
    held = of(ledger, owner, ref)
    assert held.usd > 0 and held.open
    assert jobs(*submit) == ref and of(ledger, owner, ref) == held
    jobs("wait", ref)
    settled = of(ledger, owner, ref).settled
    assert settled is not None and 0 <= settled < held.usd
    (row,) = json.loads(jobs("spend", "--team", owner, "-o", "json"))
    assert float(row["held"]) == row["jobs"] == 0 and float(row["settled"]) >= settled / 1e6

    # A retry may cost what the first may.
    again = jobs("retry", ref, "-o", "id")
    assert of(ledger, owner, again).usd == held.usd and again != ref
    jobs("wait", again)
    rows = {row["job"]: row for row in json.loads(jobs("spend", "--jobs", "-o", "json"))}
    assert rows[again]["settled"] is not None and rows[ref]["settled"] is not None


def test_what_does_not_fit_is_refused_before_anything_is_sent(
    jobs: Jobs, ledger: Ledger, owner: str, tmp_path: Path
) -> None:
    before = jobs("ls", "-a", "-o", "id", "--to", "gpu"), ledger.holds(owner)
    said = jobs("submit", job(tmp_path, "dear", timeout_s=864_000), "--to", "gpu", code=5)
    assert " left of $20.00 for " in said and " may cost $" in said and "hint: timeout_s of at most " in said
    said = jobs("submit", job(tmp_path, "poor", more="labels: {team: vision}\n"), "--to", "gpu", code=5)
    assert said.startswith("error: team vision has $0.000001 left of $0.000001 for ")
    said = jobs("submit", job(tmp_path, "whose", more="labels: {team: visoin}\n"), "--to", "gpu", code=2)
    assert "labels.team: " in said and "vision" in said
    (tmp_path / "unbounded.yaml").write_text(UNBOUNDED)
    said = jobs("submit", str(tmp_path / "unbounded.yaml"), "--to", "gpu", code=5)
    assert "nothing bounds what a job without timeout_s costs" in said and "timeout_s in the job file" in said
    assert (jobs("ls", "-a", "-o", "id", "--to", "gpu"), ledger.holds(owner)) == before
    assert ledger.balance("vision", f"{datetime.fromtimestamp(ledger.now(), UTC):%Y-%m}") == Balance()


def test_many_jobs_are_held_for_together(jobs: Jobs, ledger: Ledger, owner: str, tmp_path: Path) -> None:
    files = [job(tmp_path, f"many-{number}", timeout_s=60) for number in range(3)]
    refs = jobs("submit", *files, "--to", "gpu", "-o", "id", "--wait").splitlines()
    assert len(refs) == 3 and all(not of(ledger, owner, ref).open for ref in refs)


def test_a_hold_that_a_client_left_behind(jobs: Jobs, ledger: Ledger, owner: str, tmp_path: Path) -> None:
    """It died once Batch had made the job, or before: the job is found by its claim, or the hold is let go."""
    ref = jobs("submit", job(tmp_path, "left"), "--to", "gpu", "--wait", "-o", "id")
    seen = of(ledger, owner, ref)
    left = replace(seen, ref=None, settled=None, lease_until=0)
    ledger.change([Change(seen, left)])
    ledger.add([replace(left, key="never", name="never-0123456789ab")], None)
    rows = {row["job"]: row for row in json.loads(jobs("spend", "settle", "-o", "json"))}
    assert rows["never-0123456789ab"]["why"] == "never made" and rows[ref]["settled"] is not None
    assert ledger.read(owner, ["never"]) == {} and of(ledger, owner, ref).settled == seen.settled


@pytest.mark.usefixtures("jobs")
def test_from_python_too(ledger: Ledger, owner: str, tmp_path: Path) -> None:
    run = submit(job(tmp_path, "from-python"), "gpu")
    held = of(ledger, owner, str(run))
    assert held.usd > 0 and held.open
    run.wait(120)
    assert not of(ledger, owner, str(run)).open
    again = run.retry()
    assert of(ledger, owner, str(again)).usd == held.usd
    again.wait(120)
    with pytest.raises(errors.OverLimit, match=r" left of \$20\.00 for .* may cost "):
        submit(job(tmp_path, "dear-too", timeout_s=864_000), "gpu")
