"""Jobs with `spot: prefer` on three platforms: reclaimed, moved to on demand by whoever looks, and one at any time.

The program does eight of its forty steps on Spot, six more once it was reclaimed, and then waits. Once the test opens
the gate it says that there is far more to do than its file says, so that whoever follows it has to move it; on demand
it ends. Its pace is told by each attempt, since Kubernetes keeps no log of a pod that is gone. So nothing here depends
on how fast the machine is.
"""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.model.keys import random_key
from sandbox.kubernetes.client import Cluster
from tests.support.engine import Sandbox
from tests.support.project import Stack
from tests.support.soak import sampled, soak_only
from tests.support.waiting import until

from .conftest import Shell, shell_on
from .google import caller, preempt, status
from .test_queues import control

PODS = "/api/v1/namespaces/jobs/pods"
TRAIN = """
import fcntl, json, os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1], os.environ.get("PART", ""))
folder.mkdir(exist_ok=True)
told, kept, gate = folder / "told", folder / "step", folder / "gate"
spot = "ACCEL_ON_DEMAND_PLAN" in os.environ

def tell(word):
    with told.open("a") as file:
        file.write(f"{word}\\n")

lock = (folder / "lock").open("w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    tell("two at once")
    sys.exit(9)

def line(**more):
    print("@accel " + json.dumps({"at": time.time(), **more}), flush=True)

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
step = int(kept.read_text()) if kept.exists() else 0
tell(f"{'spot' if spot else 'on demand'} from {step}")
line(event="resume", step=step, steps=40)
enough = 40 if not spot else 8 if step < 8 else 14
while step < enough:
    time.sleep(0.05)
    step += 1
    kept.with_suffix(".new").write_text(str(step))
    kept.with_suffix(".new").replace(kept)
    line(step=step, steps=40)
    line(event="checkpoint", step=step)
while spot:
    time.sleep(0.2)
    if gate.exists():
        line(step=step, steps=10**7)
    if (folder / "enough").exists():
        break
line(metrics={"on_demand": 0 if spot else 1})
tell("done")
"""


@pytest.fixture
def shell(both: Stack, google: Sandbox, tmp_path: Path) -> Shell:
    return shell_on(google, both.folder / "targets.json", tmp_path)


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., str]:
    def write(name: str, **fields: Any) -> str:
        document = {
            "name": name,
            "image": "local/examples",
            "command": ["python", "-c", TRAIN, str(tmp_path)],
            "cpus": 1,
            "memory_mib": 4096,
            "spot": "prefer",
            "deadline": "1h",
            "work_s": "5m",
            "changeover_s": 10,
            **fields,
        }
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document))
        return str(path)

    return write


def told(folder: Path) -> list[str]:
    return (folder / "told").read_text().splitlines() if (folder / "told").exists() else []


def reclaim_on_aws(google: Sandbox, ref: str) -> None:
    control(google, kind="reclaim", job_id=ref.rpartition("/")[2])


def reclaim_on_google_batch(google: Sandbox, ref: str) -> None:
    preempt(caller(google), ref)


def reclaim_on_gke(google: Sandbox, ref: str) -> None:
    cluster = Cluster.of(google.home)
    found = cluster.list(PODS, labelSelector=f"batch.kubernetes.io/job-name={ref.rpartition('/')[2]}")
    (pod,) = [one for one in found if one["status"]["phase"] == "Running"]
    cluster.delete(f"/api/v1/nodes/{pod['spec']['nodeName']}")


TARGETS = {
    "spot": (reclaim_on_aws, ["--then-to", "steady"]),
    "batch": (reclaim_on_google_batch, []),
    "gke": (reclaim_on_gke, []),
}


@pytest.mark.parametrize("target", sampled(TARGETS, ["batch"]))
def test_a_reclaimed_job_is_moved_in_time_and_resumes(
    target: str, shell: Shell, google: Sandbox, job: Callable[..., str], tmp_path: Path
) -> None:
    reclaim, then_to = TARGETS[target]
    name = f"moves-{random_key()}"
    file = job(name, **({} if then_to else {"accelerator": {"type": "l4"}}))
    submit = ["submit", file, "--to", target, *then_to, "--key", "k", "--no-quota", "-o", "id"]
    first = shell.jobs(*submit)
    # Two who wait and one who tends, at once.
    clients = [shell.start("jobs", *submit, "--wait") for _ in range(2)]
    tending = shell.start("jobs", "tend", first, "--every", "1s")
    try:
        until(lambda: (tmp_path / "step").exists() and (tmp_path / "step").read_text() == "8")
        reclaim(google, first)
        until(lambda: told(tmp_path)[1:] == ["spot from 8"] and (tmp_path / "step").read_text() == "14")
        (tmp_path / "gate").touch()
        answers = [client.communicate(timeout=180) for client in clients]
    finally:
        tended = end(tending)
        for client in clients:
            if client.poll() is None:
                end(client)
    assert tending.returncode == 130, tended
    assert [client.returncode for client in clients] == [0, 0], answers
    assert told(tmp_path) == ["spot from 0", "spot from 8", "on demand from 14", "done"]
    (refs, other) = (answer[0].split() for answer in answers)
    assert refs == other and refs[0] == first and len(refs) == 2, "both made one and the same job"
    assert any("goes on on demand" in said and "saved step 14 of 1e+07" in said for _, said in (*answers, tended)), (
        answers,
        tended,
    )
    before, after = (status(shell, ref) for ref in refs)
    assert (before["phase"], before["taken"]) == ("FAILED", None)
    if target != "gke":  # where nothing counts a pod that is gone
        assert (before["attempts"], before["lost"]) == (2, 1)
        assert before["lost_gpu_hours"] is not None and before["lost_gpu_hours"] >= 0
    assert (after["phase"], after["attempts"], after["lost"]) == ("SUCCEEDED", 1, 0)
    assert status_of_tend(shell, first)["ref"] == refs[1]
    listed = shell.jobs("ls", "-a", "--to", then_to[-1] if then_to else target, "-o", "id").splitlines()
    assert len([ref for ref in listed if str(status(shell, ref)["name"]).startswith(name)]) == (1 if then_to else 2)
    assert shell.jobs(*submit, "--wait").split() == refs, "the same command again makes no other job"


@soak_only
def test_each_task_of_a_sweep_moves_by_itself(shell: Shell, job: Callable[..., str], tmp_path: Path) -> None:
    file = job("tuned", sweep={"grid": {"PART": ["stays", "moves"]}})
    submit = ["submit", file, "--to", "spot", *TARGETS["spot"][1], "--key", "k", "--no-quota", "-o", "id"]
    refs = shell.jobs(*submit).split()
    assert len(refs) == 2
    tending = shell.start("jobs", "tend", *refs, "--every", "1s")
    try:
        until(lambda: told(tmp_path / "stays") and told(tmp_path / "moves"))
        (tmp_path / "moves" / "gate").touch()
        until(lambda: "done" in told(tmp_path / "moves"))
        assert told(tmp_path / "stays") == ["spot from 0"] and status(shell, refs[0])["phase"] == "RUNNING"
        (tmp_path / "stays" / "enough").touch()
        until(lambda: status(shell, refs[0])["phase"] == "SUCCEEDED")
    finally:
        end(tending)
    assert told(tmp_path / "moves") == ["spot from 0", "on demand from 8", "done"]
    (stayed, moved) = shell.jobs("tend", *refs, "-o", "id").split()
    assert stayed == refs[0] and moved != refs[1]
    shell.jobs("wait", moved, "--timeout", "120s")
    found = json.loads(shell.jobs("results", stayed, moved, "--by", "on_demand", "--max", "-o", "json"))
    assert [(each["task"], each["params"], each["state"], each["metrics"]["on_demand"]) for each in found] == [
        (1, {"PART": "moves"}, "SUCCEEDED", 1),
        (0, {"PART": "stays"}, "SUCCEEDED", 0),
    ]


@pytest.mark.parametrize("target", sampled(TARGETS, ["spot"]))
def test_what_its_user_cancels_stays_so(target: str, shell: Shell, job: Callable[..., str], tmp_path: Path) -> None:
    then_to = TARGETS[target][1]
    file = job("stays", **({} if then_to else {"accelerator": {"type": "l4"}}))
    submit = ["submit", file, "--to", target, *then_to, "--no-quota", "-o", "id"]
    ref = shell.jobs(*submit)
    until(lambda: told(tmp_path))
    shell.jobs("cancel", ref, "--yes")
    until(lambda: status(shell, ref)["phase"] == "FAILED")
    tended = status_of_tend(shell, ref)
    assert (tended["ref"], tended["phase"]) == (ref, "FAILED")
    assert told(tmp_path) == ["spot from 0"]


def test_what_cannot_be_moved_is_refused(shell: Shell, job: Callable[..., str]) -> None:
    (error, hint) = shell.fails("submit", job("alone"), "--to", "spot", code=2)
    assert "a second one is needed" in error and "--then-to" in hint
    (error, *_) = shell.fails("submit", job("same"), "--to", "spot", "--then-to", "spot", code=2)
    assert "on demand on spot" in error and "asks for on-demand only" in error
    (error, *_) = shell.fails("submit", job("late", deadline="5m"), "--to", "gke", code=2)
    assert "late.yaml:" in error and "leaves no time for Spot" in error
    lines = shell.fails("tend", "--to", "local", code=2)
    assert "looked after by their own service" in lines[0]


def status_of_tend(shell: Shell, ref: str) -> dict[str, Any]:
    (row,) = json.loads(shell.jobs("tend", ref, "-o", "json"))
    return row


def end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it has printed."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    return process.communicate(timeout=60)
