"""TPUs that a stack declares, and a job on a VM of its own: preempted, and brought back by the scheduled function while
no client looks. A destroy leaves nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import commands
from tests.support.engine import WITHOUT_KUBERNETES, Sandbox, started
from tests.support.project import Stack, google_sections
from tests.support.soak import soak_only
from tests.support.waiting import until

from .conftest import Shell, shell_on
from .google import PROJECT, Call, caller, printed, status
from .test_vms import CHECKPOINT, left

ZONE = "us-central1-a"
TPU = f"tpu.googleapis.com/v2/projects/{PROJECT}/locations/{ZONE}"
QUEUED = {"zone": ZONE, "accelerator_type": "v5litepod-16", "capacity": "spot", "slices": 2, "valid_for_s": 86_400}


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    yield from started(tmp_path_factory.mktemp("queued"), WITHOUT_KUBERNETES)


@pytest.fixture(scope="module")
def google(machines: Sandbox) -> Call:
    return caller(machines)


def section(**vms: Any) -> dict[str, Any]:
    subnet = {"nodes": "10.60.0.0/22", "pods": "10.64.0.0/14", "services": "10.68.0.0/20"}
    targets = {"vm": {"kind": "gce", "zones": [ZONE, "us-central1-b"]}}
    more = {"jobs": {"force_delete": True}, "targets": targets, "queued_tpus": {"trainer": QUEUED}}
    values = google_sections()
    values["gcp"]["network"] = {"kind": "create", "subnets": {"us-central1": subnet}}
    values["gcp"]["vms"] = {**more, **vms}
    return values


@pytest.fixture(scope="module")
def stack(machines: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    made = Stack(tmp_path_factory.mktemp("queued"), machines, section(reconcile={"every_min": 1}), stack="queued")
    made.up_targets()
    return made


@pytest.fixture
def shell(stack: Stack, machines: Sandbox, tmp_path: Path) -> Shell:
    return shell_on(machines, stack.folder / "targets.json", tmp_path)


def requests_of(google: Call) -> list[dict[str, Any]]:
    return google("GET", f"{TPU}/queuedResources").get("queuedResources", [])


def active(google: Call) -> dict[str, Any] | None:
    """The one request, once it has its TPUs."""
    found = requests_of(google)
    return found[0] if [each["state"]["state"] for each in found] == ["ACTIVE"] else None


def nodes(google: Call) -> list[str]:
    return sorted(each["name"].rpartition("/")[2] for each in google("GET", f"{TPU}/nodes").get("nodes", []))


@soak_only
def test_preempted_tpus_come_back_by_the_function_alone(stack: Stack, google: Call) -> None:
    told = stack.outputs()["vms"]["queued_tpus"]["trainer"]
    first = until(lambda: active(google))
    (spec,) = first["tpu"]["nodeSpec"]
    assert first["spot"] == {} and first["queueingPolicy"] == {"validUntilDuration": "86400s"}
    assert spec["multisliceParams"]["nodeCount"] == 2 and nodes(google) == told["nodes"]
    google("POST", "sandbox-api/preempt", {"name": first["name"]})
    second = until(lambda: (found := active(google)) and found["name"] != first["name"] and found)
    assert nodes(google) == told["nodes"] and second["name"] == f"{first['name']}-r2"


def test_a_preempted_job_is_resumed_by_the_function_alone(shell: Shell, google: Call, tmp_path: Path) -> None:
    job = {
        "name": "tune",
        "image": "local/examples",
        "command": ["python", "-c", CHECKPOINT],
        "env": {"CHECKPOINT_DIR": str(tmp_path)},
        "accelerator": {"type": "l4", "count": 1},
        "spot": True,
        "gce": {"grace_s": 5},
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    ref = shell.jobs("submit", str(tmp_path / "job.yaml"), "--to", "vm", "-o", "id")
    printed(shell, ref, "runs")
    here = f"projects/{PROJECT}/zones/{ZONE}/instances"
    found = google("GET", f"compute.googleapis.com/compute/v1/{here}")["items"]
    name = next(each["name"] for each in found if each["name"].endswith(ref.rpartition("/")[2]))
    google("POST", "sandbox-api/preempt", {"name": f"{here}/{name}"})
    # `get` and `logs` only look.
    until(lambda: status(shell, ref)["phase"] == "SUCCEEDED")
    ended = status(shell, ref)
    assert (ended["attempts"], ended["lost"]) == (2, 1) and "resumes at step 7" in shell.jobs("logs", ref)


@soak_only
def test_a_client_and_the_function_do_each_others_work(shell: Shell, google: Call) -> None:
    before = until(lambda: active(google))
    google("POST", "sandbox-api/preempt", {"name": before["name"]})

    def back() -> Any:
        shell.jobs("tend", "--to", "vm")
        return (found := active(google)) and found["name"] != before["name"]

    until(back)
    assert len(requests_of(google)) == 1


@soak_only
def test_drift_and_leaks_know_them(stack: Stack, shell: Shell, google: Call) -> None:
    """With a schedule that is paused, and nobody else who looks."""

    def told(verb: str, *arguments: str) -> dict[tuple[str, str], str]:
        options = (*arguments, stack.stack, "-o", "json")
        done = commands.run("stacks", verb, *options, cwd=stack.folder, env=shell.variables)
        return {(each["what"], each["name"]): each.get("text") or each["why"] for each in json.loads(done.stdout)}

    before = until(lambda: active(google))
    assert told("drift", "--no-quota", "--no-properties") == {} == told("leaks", "--older-than", "0")
    schedule = f"cloudscheduler.googleapis.com/v1/{stack.outputs()['reconcile']['schedule']}"
    google("POST", f"{schedule}:pause")
    until(lambda: all(each["ended"] for each in google("GET", "sandbox-api/functions")["calls"]))
    google("POST", "sandbox-api/preempt", {"name": before["name"]})
    until(lambda: requests_of(google)[0]["state"]["state"] == "SUSPENDED")
    drifted = told("drift", "--no-quota", "--no-properties")
    assert drifted["schedule", "reconcile"] == "is PAUSED, and calls nothing"
    assert "no longer eligible" in drifted["declared TPUs", "trainer"]
    short = before["name"].rpartition("/")[2]
    assert told("leaks", "--older-than", "0")["queued resource", short] == "was preempted and holds its quota"
    google("POST", f"{schedule}:resume")
    until(lambda: (found := active(google)) and found["name"] != before["name"])


def test_a_change_asks_anew_and_a_second_update_changes_nothing(stack: Stack, google: Call) -> None:
    first = until(lambda: active(google))
    stack.write_environment(section(reconcile={"every_min": 1}, queued_tpus={"trainer": {**QUEUED, "slices": 1}}))
    changed = stack.up()
    assert [(each.op, each.name) for each in changed.steps if each.op not in ("same", "read")][:1], changed.text
    second = until(lambda: (found := active(google)) and found["name"] != first["name"] and found)
    assert "nodeId" in second["tpu"]["nodeSpec"][0]
    again = stack.up("--refresh")
    assert {each.op for each in again.steps} <= {"same", "refresh", "read"}, again.text


@soak_only
def test_what_was_given_up_is_asked_for_by_a_replacement(stack: Stack, google: Call) -> None:
    """As the page about budgets says of TPUs that a stop has cancelled."""
    first = until(lambda: active(google))
    state = json.loads(stack.run("stack", "export", "--stack", stack.stack).stdout)
    kind = "gcp:storage/bucketObject:BucketObject::trainer"
    (urn,) = [one["urn"] for one in state["deployment"]["resources"] if one["urn"].endswith(kind)]
    assert stack.up("--replace", urn).ops("replace")
    second = until(lambda: active(google))
    assert second["name"] != first["name"]


def test_a_destroy_leaves_nothing(stack: Stack, google: Call) -> None:
    """Last: the functions' calls say that none of them has failed, and the records go with the bucket."""
    calls = google("GET", "sandbox-api/functions")["calls"]
    assert calls and not [each for each in calls if each["ended"] and each["code"]], calls[-3:]
    stack.destroy()
    until(lambda: left(google) == [])
    jobs = google("GET", f"cloudscheduler.googleapis.com/v1/projects/{PROJECT}/locations/us-central1/jobs")
    assert jobs.get("jobs", []) == []
    assert google("GET", f"storage.googleapis.com/storage/v1/b?project={PROJECT}").get("items", []) == []
