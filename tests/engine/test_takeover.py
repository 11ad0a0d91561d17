"""Two stacks of an earlier version, with its claims, its ledgers and its jobs under way, are taken over by this one, on
the real engine: nothing is replaced, no job is made twice, none is lost, and each is ended, moved on and settled."""

import json
import time
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sandbox.plugins.mapping import plain
from tests.e2e.conftest import Shell
from tests.e2e.google import shell_on
from tests.support import records
from tests.support.engine import Result
from tests.support.project import Stack
from tests.support.records import PROJECT, REGION, Json
from tests.support.restoration import Restoration, restore
from tests.support.waiting import until

pytestmark = pytest.mark.engine
SAME = ("attempts", "exit_code", "gpus", "lost", "name", "phase", "reason", "ref", "taken", "target", "tasks")
"""Of what `get` prints: what the version printed too."""
PATIENCE_S = 60
KEYS = ("batch-ended", "batch-runs", "vertex-runs", "vm-ended", "vm-moved", "tpu-waits")


@pytest.fixture(scope="module", params=records.commits())
def before(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restoration]:
    yield from restore(tmp_path_factory.mktemp("before"), request.param)


@pytest.fixture(scope="module")
def shell(before: Restoration, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """That of whoever used the version: with its targets, its history and its local claims."""
    folder = tmp_path_factory.mktemp("client")
    records.unpack(before.records, folder / "state")
    (folder / "targets.json").write_text(json.dumps(before.targets))
    for key, each in before.records.jobs.items():
        (folder / f"{key}.yaml").write_text(json.dumps(each.document))
    found = shell_on(before.sandbox, folder / "targets.json", folder)
    return Shell(folder, {**found.variables, "ACCEL_IMAGE_CHECK": "off"})


def again(key: str, target: str) -> tuple[str, ...]:
    return ("submit", f"{key}.yaml", "--to", target, "--no-quota", "--key", key, "-o", "id")


def status(shell: Shell, ref: str) -> Json:
    return json.loads(shell.jobs("get", ref, "-o", "json"))


def spend(shell: Shell) -> list[Json]:
    return json.loads(shell.jobs("spend", "-o", "json"))


def test_jobs_and_ledgers_are_read_as_they_were(before: Restoration, shell: Shell) -> None:
    """By a client that was updated before its stack."""
    assert spend(shell) == before.records.spend
    wanted = {each.ref: each.printed for each in before.records.jobs.values() if each.ref}
    found: dict[str, Json] = {}

    def as_before() -> bool:
        """Those that have just been sent again need their time."""
        late = [ref for ref in wanted if ref not in found or found[ref]["phase"] != wanted[ref]["phase"]]
        found.update({ref: status(shell, ref) for ref in late})
        return time.monotonic() > begun + PATIENCE_S or all(found[ref]["phase"] == wanted[ref]["phase"] for ref in late)

    begun = time.monotonic()
    until(as_before)
    assert _same(found) == _same(wanted)
    for target, running in (("vm", {"vm-lost", "vm-moved", "vm-runs"}), ("tpu", {"tpu-runs"})):
        rows = json.loads(shell.jobs("ls", "--to", target, "-o", "json"))
        assert {row["name"] for row in rows if row["phase"] == "RUNNING"} == running


def _same(printed: Mapping[str, Json]) -> list[Json]:
    return [{name: printed[ref][name] for name in SAME} for ref in sorted(printed)]


def update(before: Restoration, name: str, folder: Path) -> Result:
    """This version's `up` on a stack of the other's."""
    stack = Stack(folder, before.sandbox, before.records.stacks[name]["environment"], stack=name)
    (folder / "state.json").write_text(json.dumps(before.exports[name]))
    stack.run("stack", "import", "--stack", name, "--file", str(folder / "state.json"))
    return stack.up()


def test_an_update_replaces_nothing(before: Restoration, shell: Shell, tmp_path: Path) -> None:
    targets: Json = {}
    for name in records.STACKS:
        done = update(before, name, tmp_path / name)
        others = {(step.op, step.name) for step in done.steps if step.op not in ("same", "update")}
        source = {(op, "reconcile-source") for op in ("create-replacement", "delete-replaced", "replace")}
        assert others <= source, "UPGRADING.md tells of the function's archive alone"
        targets |= done.outputs["targets"]
    for name, old in before.targets.items():
        assert old.items() <= plain(targets[name]).items()
    Path(shell.variables["ACCEL_TARGETS"]).write_text(json.dumps(targets))


def test_the_same_key_gives_the_same_job(before: Restoration, shell: Shell) -> None:
    held = spend(shell)
    for key in KEYS:
        assert shell.jobs(*again(key, before.job(key).target)) == before.job(key).ref
    # Made, but their clients died before they wrote so into the claims.
    queue, name = before.targets["gpu"]["queue_arn"], [{"name": "JOB_NAME", "values": ["batch-sent-*"]}]
    (made,) = before.sandbox.client("batch").list_jobs(jobQueue=queue, filters=name)["jobSummaryList"]
    assert shell.jobs(*again("batch-sent", "gpu")) == f"aws-batch:us-east-1/{made['jobId']}"
    at = f"aiplatform.googleapis.com/v1/projects/{PROJECT}/locations/{REGION}/customJobs"
    there = {each["name"].rpartition("/")[2]: each["displayName"] for each in before.google("GET", at)["customJobs"]}
    _, _, found = shell.jobs(*again("vertex-sent", "vertex")).rpartition("/")
    assert there[found].startswith("vertex-sent-")
    assert spend(shell) == held


def test_jobs_on_vms_are_moved_on_and_ended(before: Restoration, shell: Shell) -> None:
    lost, runs = before.job("vm-lost").ref, before.job("vm-runs").ref
    (machine,) = [each["instance"] for each in before.records.machines
                  if "vm-lost" in each.get("instance", {}).get("name", "")]  # fmt: skip
    before.google("POST", "sandbox-api/preempt", {"name": machine["selfLink"].partition("/v1/")[2]})

    def moved() -> bool:
        shell.jobs("tend", lost)
        found = status(shell, lost)
        return (found["attempts"], found["lost"], found["phase"]) == (2, 1, "RUNNING")

    until(moved)
    before.go.touch()
    shell.jobs("wait", runs, "--timeout", "60s")
    assert status(shell, runs)["phase"] == "SUCCEEDED"
    refs = [before.job(key).ref for key in ("vm-lost", "vm-moved", "tpu-runs", "tpu-waits")]
    shell.jobs("cancel", *refs, "--yes")
    shell.jobs("wait", *refs, "--timeout", "60s", code=125)
    assert {status(shell, ref)["phase"] for ref in refs} == {"FAILED"}


def test_the_function_of_the_stack_goes_on_with_what_it_finds(before: Restoration, shell: Shell) -> None:
    """A job that was claimed, and whose machine nobody had asked for."""
    resources = before.exports["google"]["deployment"]["resources"]
    (schedule,) = [each["id"] for each in resources if each["type"] == "gcp:cloudscheduler/job:Job"]

    def runs() -> list[Any]:
        before.google("POST", f"cloudscheduler.googleapis.com/v1/{schedule}:run", {})
        rows = json.loads(shell.jobs("ls", "--to", "vm", "-o", "json"))
        return [row["ref"] for row in rows if (row["name"], row["phase"]) == ("vm-planned", "RUNNING")]

    until(lambda: bool(runs()))

    def calls() -> list[Json]:
        return before.google("GET", "sandbox-api/functions")["calls"]

    until(lambda: all(each["ended"] for each in calls()))
    assert {each["code"] for each in calls()} == {0}
    (ref,) = runs()
    assert shell.jobs(*again("vm-planned", "vm")) == ref
    shell.jobs("cancel", ref, "--yes")
    shell.jobs("wait", ref, "--timeout", "60s", code=125)


def test_what_has_ended_is_settled(before: Restoration, shell: Shell) -> None:
    """All on VMs has; what goes on elsewhere stays held, and no hold is counted twice."""
    was = before.records.spend
    shell.jobs("spend", "settle")
    now = spend(shell)
    assert [row["team"] for row in now] == [row["team"] for row in was]
    for old, new in zip(was, now, strict=True):
        assert Decimal(new["held"]) <= Decimal(old["held"]) and Decimal(new["settled"]) >= Decimal(old["settled"])
    rows = {row["job"]: row for row in json.loads(shell.jobs("spend", "--jobs", "-o", "json"))}
    for key in ("vm-runs", "vm-lost", "vm-moved", "tpu-runs", "tpu-waits"):
        assert rows[before.job(key).ref]["settled"] is not None
    for key in ("batch-runs", "vertex-runs"):
        assert rows[before.job(key).ref]["settled"] is None


def test_what_ran_is_gone(before: Restoration) -> None:
    at = f"compute.googleapis.com/compute/v1/projects/{PROJECT}/zones/{REGION}-"
    until(lambda: not [zone for zone in "ab" if before.google("GET", f"{at}{zone}/instances").get("items")])
