"""Jobs on TPU VMs and GPU VMs of their own, from `pulumi up` to nothing left: machines that really run the agent."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import WITHOUT_KUBERNETES, Sandbox, started
from tests.support.meeting import MEETING
from tests.support.project import Stack, google_sections
from tests.support.soak import sampled, soak_only
from tests.support.waiting import until

from . import files_of_others as files
from .conftest import Shell, shell_on
from .google import PROJECT, Call, caller, printed, status
from .test_code import Project, goes_round

ZONES = {
    "v2-8": "europe-west4-a",
    "v3-8": "europe-west4-a",
    "v4-16": "us-central2-b",
    "v5litepod-4": "europe-west4-a",
    "v5p-8": "europe-west4-b",
    "v6e-8": "europe-west4-a",
}
"""One slice of each generation, that of v4 on two hosts."""
CHECKPOINT = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(os.environ["CHECKPOINT_DIR"])
host = os.environ.get("TPU_WORKER_ID", "0")
kept = folder / f"{os.environ['ACCEL_JOB_NAME']}-{host}"
if kept.exists():
    print("resumes at", kept.read_text(), flush=True)
    sys.exit(0)
def save(*_):
    kept.write_text("step 7")
    print("saved at step 7", flush=True)
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
print("runs", flush=True)
time.sleep(600)
"""

ATTACK = """
import json, os, urllib.error, urllib.request
inside = f"http://{os.environ['GCE_METADATA_HOST']}/computeMetadata/v1/instance/"
def own(path):
    asked = urllib.request.Request(inside + path, headers={"Metadata-Flavor": "Google"})
    return json.loads(urllib.request.urlopen(asked).read())
head = {"Authorization": "Bearer " + own("service-accounts/default/token")["access_token"]}
job = own("attributes/accel-job")
for name in ("accel-targets/vm.json", f"accel-jobs/{job['name']}/record.json", f"accel-jobs/{job['name']}/mine.json"):
    url = f"{os.environ['STORAGE']}/upload/storage/v1/b/{job['bucket']}/o?uploadType=media&name={name}"
    try:
        code = urllib.request.urlopen(urllib.request.Request(url, b"{}", head, method="POST")).status
    except urllib.error.HTTPError as error:
        code = error.code
    print("wrote", name.rpartition("/")[2], code, flush=True)
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    yield from started(tmp_path_factory.mktemp("machines"), WITHOUT_KUBERNETES)


def section() -> dict[str, Any]:
    """The ground of jobs, with targets in every zone that the tests ask for."""
    values = google_sections()
    regions = ["us-central1", *dict.fromkeys(zone.rpartition("-")[0] for zone in ZONES.values())]
    subnets = {
        region: {"nodes": f"10.{60 + i}.0.0/22", "pods": f"10.{100 + 4 * i}.0.0/14", "services": f"10.{80 + i}.0.0/20"}
        for i, region in enumerate(regions)
    }
    zones = list(dict.fromkeys(ZONES.values()))
    targets = {
        "tpu": {"kind": "tpu-vm", "zones": ["us-central1-a", *zones]},
        "vm": {"kind": "gce", "zones": ["us-central1-a", "us-central1-b"]},
    }
    vms = {"jobs": {"force_delete": True}, "targets": targets}
    values["gcp"] |= {"network": {"kind": "create", "subnets": subnets}, "vms": vms}
    return values


@pytest.fixture(scope="module")
def deployed(machines: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The section, deployed; destroyed, it leaves nothing."""
    stack = Stack(tmp_path_factory.mktemp("vms"), machines, section(), stack="vms")
    outputs = stack.up_targets()
    (stack.folder / "source").write_text(outputs["vm_targets"])
    yield stack
    stack.destroy()


@pytest.fixture
def shell(deployed: Stack, machines: Sandbox, tmp_path: Path) -> Shell:
    return shell_on(machines, deployed.folder / "targets.json", tmp_path)


@pytest.fixture
def submit(shell: Shell, job: Callable[..., str], tmp_path: Path) -> Callable[..., str]:
    def send(name: str, *more: str, to: str = "tpu", **fields: Any) -> str:
        fields = {"command": ["python", "-c", CHECKPOINT], "env": {"CHECKPOINT_DIR": str(tmp_path)}, **fields}
        return shell.jobs("submit", job(name=name, **fields), "--to", to, "-o", "id", *more)

    return send


@pytest.fixture
def google(machines: Sandbox) -> Call:
    return caller(machines)


def nothing_left(shell: Shell) -> None:
    """Deletions take a moment."""
    until(lambda: shell.stacks("leaks", "--project", PROJECT, "-o", "json") == "[]")


def left(google: Call) -> list[str]:
    """Every machine and request, leak or not."""
    tpu = f"tpu.googleapis.com/v2/projects/{PROJECT}/locations/-"
    found = [each["name"] for each in google("GET", f"{tpu}/queuedResources").get("queuedResources", [])]
    found += [each["name"] for each in google("GET", f"{tpu}/nodes").get("nodes", [])]
    compute = f"compute.googleapis.com/compute/v1/projects/{PROJECT}"
    for kind in ("instances", "instanceGroupManagers", "disks"):
        items = google("GET", f"{compute}/aggregated/{kind}").get("items", {})
        found += [each["name"] for inside in items.values() for each in inside.get(kind, [])]
    templates = google("GET", f"{compute}/global/instanceTemplates").get("items", [])
    return found + [each["name"] for each in templates]


@pytest.mark.parametrize("kind", sampled(ZONES, ["v4-16"]))
def test_each_generation_from_its_queue_to_nothing_left(
    kind: str, shell: Shell, submit: Callable[..., str], google: Call
) -> None:
    """Queued, preempted, queued again, run to its end."""
    zone = ZONES[kind]
    ref = submit(f"train-{kind}", accelerator={"type": kind}, spot=True, tpu_vm={"zones": [zone], "grace_s": 5})
    name = ref.rpartition("/")[2]
    hosts = 2 if kind == "v4-16" else 1
    until(lambda: shell.jobs("logs", ref).count("runs") == hosts)
    assert status(shell, ref)["phase"] == "RUNNING"
    google("POST", "sandbox-api/preempt", {"name": f"projects/{PROJECT}/locations/{zone}/queuedResources/{name}"})
    shell.jobs("wait", ref, "--timeout", "90s")
    ended = status(shell, ref)
    assert (ended["phase"], ended["attempts"], ended["lost"], ended["exit_code"]) == ("SUCCEEDED", 2, 1, 0)
    text = shell.jobs("logs", ref)
    assert "saved at step 7" in text and "resumes at step 7" in text and "[attempt 2]" in text.replace("node 0 ", "")
    until(lambda: left(google) == [])
    nothing_left(shell)


def test_a_gpu_vm_from_up_to_a_finished_job_with_a_preemption(
    shell: Shell, submit: Callable[..., str], google: Call
) -> None:
    fields = {"accelerator": {"type": "l4", "count": 1}, "spot": True, "gce": {"grace_s": 5}}
    ref = submit("tune", to="vm", timeout_s="1h", **fields)
    printed(shell, ref, "runs")
    name = next(each for each in left(google) if each.endswith(ref.rpartition("/")[2]))
    google("POST", "sandbox-api/preempt", {"name": f"projects/{PROJECT}/zones/us-central1-a/instances/{name}"})
    shell.jobs("wait", ref, "--timeout", "90s")
    ended = status(shell, ref)
    assert (ended["phase"], ended["attempts"], ended["lost"]) == ("SUCCEEDED", 2, 1)
    assert "resumes at step 7" in shell.jobs("logs", ref)
    until(lambda: left(google) == [])
    nothing_left(shell)


def test_a_job_can_write_its_own_and_neither_target_nor_record(
    shell: Shell, submit: Callable[..., str], google: Call, machines: Sandbox
) -> None:
    """With what its machine has: its token, and where its bucket is."""
    url = json.loads((machines.home / "google.json").read_text())["url"]
    fields = {"accelerator": {"type": "l4", "count": 1}, "env": {"STORAGE": f"{url}/storage.googleapis.com"}}
    ref = submit("attack", "--wait", to="vm", image=None, command=["python3", "-c", ATTACK], **fields)
    assert status(shell, ref)["phase"] == "SUCCEEDED"
    text = shell.jobs("logs", ref)
    assert "wrote vm.json 403" in text and "wrote record.json 403" in text and "wrote mine.json 200" in text
    until(lambda: left(google) == [])


@soak_only
def test_two_gpu_vms_of_one_job_meet(shell: Shell, submit: Callable[..., str], google: Call) -> None:
    ref = submit(
        "meet", "--wait", to="vm", nodes=2, accelerator={"type": "l4", "count": 1}, command=["python", "-c", MEETING]
    )
    text = shell.jobs("logs", ref)
    assert "[node 0] met rank 1" in text and "[node 1] heard done" in text
    until(lambda: left(google) == [])


def test_a_zone_without_capacity_is_left_for_the_next(shell: Shell, submit: Callable[..., str], google: Call) -> None:
    google("POST", "sandbox-api/faults", {"stockout": ["us-central1-a/g2-standard-4"]})
    try:
        command = {"command": ["true"], "accelerator": {"type": "l4", "count": 1}}
        ref = submit("elsewhere", "--wait", to="vm", gce={"machine_type": "g2-standard-4"}, **command)
    finally:
        google("DELETE", "sandbox-api/faults")
    assert status(shell, ref)["phase"] == "SUCCEEDED"
    # No zone at all: the error names them.
    google("POST", "sandbox-api/faults", {"stockout": ["g2-standard-4"]})
    try:
        ref = submit("nowhere", to="vm", gce={"machine_type": "g2-standard-4"}, **command)
        ended = status(shell, ref)
        assert ended["phase"] == "FAILED" and "us-central1-a, us-central1-b" in ended["reason"]
    finally:
        google("DELETE", "sandbox-api/faults")


def test_cancelling_leaves_nothing(shell: Shell, submit: Callable[..., str], google: Call) -> None:
    ref = submit("stop", accelerator={"type": "v5litepod-4"}, tpu_vm={"zones": ["europe-west4-a"]})
    printed(shell, ref, "runs")
    shell.jobs("cancel", ref, "-y")
    until(lambda: left(google) == [])
    assert status(shell, ref)["phase"] == "FAILED"


def test_a_client_that_never_comes_back_costs_nothing(shell: Shell, submit: Callable[..., str], google: Call) -> None:
    """The machine gives itself back; what it leaves behind says how it ended."""
    ref = submit("alone", accelerator={"type": "v6e-4"}, tpu_vm={"zones": ["europe-west4-a"]}, command=["true"])
    until(lambda: left(google) == [])
    assert status(shell, ref)["phase"] == "SUCCEEDED"


def test_one_key_makes_one_job(shell: Shell, submit: Callable[..., str], google: Call) -> None:
    fields = {"accelerator": {"type": "v6e-4"}, "tpu_vm": {"zones": ["europe-west4-a"]}, "command": ["true"]}
    first = submit("once", "--key", "k", **fields)
    assert submit("once", "--key", "k", **fields) == first
    shell.jobs("wait", first, "--timeout", "60s")
    assert status(shell, first)["attempts"] == 1


def test_targets_are_published_in_the_bucket(shell: Shell, deployed: Stack) -> None:
    source = (deployed.folder / "source").read_text()
    rows = json.loads(shell.jobs("targets", "--targets", source, "-o", "json"))
    assert {row["name"]: row["kind"] for row in rows} == {"tpu": "tpu-vm", "vm": "gce", "local": "local"}
    assert "ok" in shell.jobs("doctor")


def test_leaks_are_found_and_removed(shell: Shell, submit: Callable[..., str], google: Call) -> None:
    """A request that was suspended, whose machine may not delete it and whose client never came back."""
    zone = "europe-west4-a"
    ref = submit("lost", accelerator={"type": "v5litepod-4"}, spot=True, tpu_vm={"zones": [zone], "grace_s": 1})
    name = ref.rpartition("/")[2]
    printed(shell, ref, "runs")
    refusal = {"method": "tpu.projects.locations.queuedResources.delete", "code": 403, "count": 1000}
    google("POST", "sandbox-api/faults", refusal)
    google("POST", "sandbox-api/preempt", {"name": f"projects/{PROJECT}/locations/{zone}/queuedResources/{name}"})

    def found() -> list[tuple[str, str]]:
        rows = json.loads(shell.stacks("leaks", "--project", PROJECT, "-o", "json"))
        return [(row["name"], row["why"]) for row in rows]

    until(lambda: found() == [(name, "was preempted and holds its quota")])
    google("DELETE", "sandbox-api/faults")
    shell.stacks("leaks", "--project", PROJECT, "--yes")
    until(lambda: left(google) == [])
    started = time.monotonic()
    shell.jobs("cancel", ref, "-y")
    assert status(shell, ref)["phase"] == "FAILED" and time.monotonic() - started < 60


@soak_only
def test_a_command_of_xpk_runs_to_its_end(shell: Shell, tmp_path: Path) -> None:
    assert "trained with --epochs 2" in files.imported(shell, files.XPK, "xpk", "tpu", tmp_path)


@soak_only
def test_its_code_is_sent_and_runs(shell: Shell, tmp_path: Path) -> None:
    goes_round(shell, Project(tmp_path / "project"), "vm", tmp_path, accelerator={"type": "l4", "count": 1})
