"""Two stacks of an earlier version, with its claims, its ledgers, the machines that it declares and its jobs under way,
are taken over by this one, on the real engine: nothing is replaced, no job is made twice, none is lost, and each is
ended, moved on and settled."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sandbox.plugins.mapping import plain
from tests.e2e.conftest import Shell, shell_on
from tests.support import records
from tests.support.project import Stack
from tests.support.records import COMPUTE, DECLARED, PROJECT, REGION, Json, stockout
from tests.support.restoration import Restoration, restore
from tests.support.soak import soak_only
from tests.support.waiting import until

pytestmark = [pytest.mark.engine, soak_only]
SAME = ("attempts", "exit_code", "gpus", "lost", "name", "phase", "reason", "ref", "taken", "target", "tasks")
"""Of what `get` prints: what the version printed too."""
PATIENCE_S = 120
KEYS = (
    *("batch-ended", "batch-runs", "vertex-runs", "vm-ended", "vm-moved", "vm-nodes", "tpu-slice", "tpu-waits"),
    *("google-batch-ended", "google-batch-nodes", "google-batch-sweep"),
    *("gke-ended", "gke-nodes", "gke-slice", "gke-sweep", "gke-waits"),
)
RUNNING = {
    "vm": ("vm-lost", "vm-moved", "vm-nodes", "vm-runs"),
    "tpu": ("tpu-runs", "tpu-slice"),
    "batch": ("google-batch-nodes", "google-batch-runs", "google-batch-sweep", "google-batch-unrecorded"),
    "gke": ("gke-nodes", "gke-slice", "gke-sweep", "gke-unrecorded"),
}
"""Jobs by target."""
FLAGGED = [*RUNNING["vm"][2:], "vm-lost", "tpu-slice", *RUNNING["batch"][:3], *RUNNING["gke"][:3]]
"""Those that end when they may."""
TPU = f"tpu.googleapis.com/v2/projects/{PROJECT}/locations/{REGION}-a"


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
    for target, names in RUNNING.items():
        assert sorted(_listed(shell, target)) == sorted(names)
    rows = json.loads(shell.jobs("ls", "-a", "--to", "gke", "-o", "json"))
    ended = {row["name"]: row["phase"] for row in rows if row["name"] not in RUNNING["gke"]}
    assert ended == {"gke-ended": "SUCCEEDED", "gke-failed": "FAILED", "gke-waits": "QUEUED"}


def _listed(shell: Shell, target: str) -> list[str]:
    rows = json.loads(shell.jobs("ls", "--to", target, "-o", "json"))
    return [row["name"] for row in rows if row["phase"] == "RUNNING"]


def _same(printed: Mapping[str, Json]) -> list[Json]:
    """But for the numbers of instances, which Google makes up, and for how many tasks of a sweep run at this moment."""
    found = [{name: printed[ref][name] for name in SAME} for ref in sorted(printed)]
    for each in found:
        if each["phase"] == "RUNNING":
            each["tasks"] = sum(each["tasks"].values())
    return json.loads(re.sub(r"instances/\d+", "instances/1", json.dumps(found)))


@pytest.fixture(scope="module")
def stacks(before: Restoration, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stack]:
    """This version's program, on the states of the other's."""
    made: dict[str, Stack] = {}
    for name in records.STACKS:
        folder = tmp_path_factory.mktemp(name)
        stack = made[name] = Stack(folder, before.sandbox, before.records.stacks[name]["environment"], stack=name)
        (folder / "state.json").write_text(json.dumps(before.exports[name]))
        stack.run("stack", "import", "--stack", name, "--file", str(folder / "state.json"))
    return made


def requests_of(before: Restoration) -> dict[str, Json]:
    """Every request for TPUs, by its name."""
    found = before.google("GET", f"{TPU}/queuedResources").get("queuedResources", [])
    return {each["name"].rpartition("/")[2]: each for each in found}


def request_of(before: Restoration, key: str) -> Json:
    """The one that a declaration has now."""
    (found,) = [each for name, each in requests_of(before).items() if name.startswith(f"{key}-")]
    return found


def machines(before: Restoration) -> dict[str, str]:
    """Everything that runs, with what tells it from another of the same name."""
    found = {name: each["createTime"] for name, each in requests_of(before).items()}
    found |= {each["name"]: each["createTime"] for each in before.google("GET", f"{TPU}/nodes").get("nodes", [])}
    zones = [f"{COMPUTE}/projects/{PROJECT}/zones/{REGION}-{zone}" for zone in "ab"]
    for each in (each for zone in zones for each in before.google("GET", f"{zone}/instances").get("items", [])):
        found[each["name"]] = each["id"]
    return found


def test_an_update_replaces_nothing(before: Restoration, shell: Shell, stacks: dict[str, Stack]) -> None:
    targets: Json = {}
    running = machines(before)
    for stack in stacks.values():
        done = stack.up()
        others = {(step.op, step.name) for step in done.steps if step.op not in ("same", "update")}
        source = {(op, "reconcile-source") for op in ("create-replacement", "delete-replaced", "replace")}
        assert others <= source, "UPGRADING.md tells of the function's archive alone"
        targets |= done.outputs["targets"]
    for name, old in before.targets.items():
        assert old.items() <= plain(targets[name]).items()
    Path(shell.variables["ACCEL_TARGETS"]).write_text(json.dumps(targets))
    assert machines(before) == running


def test_what_runs_tells_of_itself(before: Restoration, shell: Shell) -> None:
    for key in FLAGGED:
        text = shell.jobs("logs", before.job(key).ref)
        hosts = {"tpu-slice": 4, "gke-slice": 4, "gke-sweep": 4}.get(key, 2 if key.endswith(("nodes", "sweep")) else 1)
        assert text.count("begins") == hosts, f"{key}: {text}"
    causes = {"gke-failed": "exit-code", "gke-waits": "queue-full", "google-batch-failed": "exit-code"}
    for key, cause in causes.items():
        assert json.loads(shell.jobs("explain", before.job(key).ref, "-o", "json"))["cause"] == cause


def test_what_the_stack_declares_is_tended(before: Restoration, shell: Shell) -> None:
    """TPUs that are there stay, those that are preempted are asked for again, those that were awaited come."""
    first, awaited = request_of(before, "trainer"), request_of(before, "later")
    shell.jobs("tend", "--to", "vm")
    assert request_of(before, "trainer") == first and first["state"]["state"] == "ACTIVE"
    assert request_of(before, "later") == awaited and awaited["state"]["state"] == "WAITING_FOR_RESOURCES"
    before.google("POST", "sandbox-api/preempt", {"name": first["name"]})

    def back() -> bool:
        shell.jobs("tend", "--to", "vm")
        found = [each["state"]["state"] for name, each in requests_of(before).items() if name.startswith("trainer-")]
        return found == ["ACTIVE"] and request_of(before, "trainer")["name"] != first["name"]

    until(back)
    anew = request_of(before, "trainer")
    assert anew["name"] == f"{first['name']}-r2"
    (was,), (now,) = (each["tpu"]["nodeSpec"] for each in (first, anew))
    assert (now["multisliceParams"], now["node"]["acceleratorType"]) == (
        was["multisliceParams"],
        was["node"]["acceleratorType"],
    )
    before.google("POST", "sandbox-api/faults", stockout("v5litepod-8"))
    until(lambda: request_of(before, "later")["state"]["state"] == "ACTIVE")
    assert request_of(before, "later")["name"] == awaited["name"]


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


def test_what_was_sent_and_not_recorded_is_the_keys_job(before: Restoration, shell: Shell) -> None:
    """Its client died before it wrote so into the ledger, or before it sent what the ledger holds."""
    held, services = spend(shell), (("google-batch", "batch"), ("gke", "gke"))
    sent = [shell.jobs(*again(f"{service}-unrecorded", target)) for service, target in services]
    assert {status(shell, ref)["phase"] for ref in sent} == {"RUNNING"}
    ends = [shell.jobs(*again(f"{service}-held", target)) for service, target in services]
    assert spend(shell) == held
    for _, target in services:
        assert set(_listed(shell, target)) - {"gke-held", "google-batch-held"} == set(RUNNING[target])
    shell.jobs("wait", *ends, "--timeout", "90s")
    shell.jobs("cancel", *sent, "--yes")
    shell.jobs("wait", *sent, "--timeout", "90s", code=125)


def test_jobs_on_vms_are_moved_on(before: Restoration, shell: Shell) -> None:
    """One machine, and one of a group, whose other goes with it."""
    refs = [before.job(key).ref for key in ("vm-lost", "vm-nodes")]
    at = f"projects/{PROJECT}/zones/{REGION}-a/instances"
    for ref in refs:
        names = [each["name"] for each in before.google("GET", f"{COMPUTE}/{at}")["items"]]
        machine = next(name for name in sorted(names) if ref.rpartition("/")[2] in name)
        before.google("POST", "sandbox-api/preempt", {"name": f"{at}/{machine}"})

    def moved() -> bool:
        shell.jobs("tend", *refs)
        found = [status(shell, ref) for ref in refs]
        return all((each["attempts"], each["lost"], each["phase"]) == (2, 1, "RUNNING") for each in found)

    until(moved)


def test_jobs_go_on_to_their_ends(before: Restoration, shell: Shell) -> None:
    before.go.touch()
    refs = [before.job(key).ref for key in (*FLAGGED, "gke-waits")]
    shell.jobs("wait", *refs, "--timeout", "90s")
    assert {status(shell, ref)["phase"] for ref in refs} == {"SUCCEEDED"}
    assert "ends" in shell.jobs("logs", before.job("gke-slice").ref)
    refs = [before.job(key).ref for key in ("vm-moved", "tpu-runs", "tpu-waits")]
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
    """What goes on stays held, and no hold is counted twice."""
    was = before.records.spend
    shell.jobs("spend", "settle")
    now = spend(shell)
    assert [row["team"] for row in now] == [row["team"] for row in was]
    for old, new in zip(was, now, strict=True):
        assert Decimal(new["held"]) <= Decimal(old["held"]) and Decimal(new["settled"]) >= Decimal(old["settled"])
    rows = {row["job"]: row for row in json.loads(shell.jobs("spend", "--jobs", "-o", "json"))}
    for key in (*FLAGGED, "vm-moved", "tpu-runs", "tpu-waits", "gke-waits"):
        assert rows[before.job(key).ref]["settled"] is not None
    for key in ("batch-runs", "vertex-runs"):
        assert rows[before.job(key).ref]["settled"] is None


def test_what_ran_is_gone(before: Restoration) -> None:
    """But for what the stack declares."""

    def left() -> bool:
        return {name.rpartition("/")[2].split("-")[0] for name in machines(before)} == {
            *("accel", "later", "steady", "trainer", "workers")
        }

    until(left)


def test_what_is_declared_no_more_goes(before: Restoration, stacks: dict[str, Stack]) -> None:
    values = before.records.stacks["google"]["environment"]
    vms = {name: each for name, each in values["gcp"]["vms"].items() if f"gcp.vms.{name}" not in DECLARED}
    stacks["google"].write_environment({**values, "gcp": {**values["gcp"], "vms": vms}})
    stacks["google"].up()
    assert machines(before) == {}
