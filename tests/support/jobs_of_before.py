"""The jobs of tests/support/records.py, one for each state in which an upgrade may find one: submitted by an earlier
version's own commands, and left there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .records import Old

GO = "@GO@"
"""In the command of a job: a file that a test puts in its place, and makes when the job shall end."""
FLAGGED = ["sh", "-c", f"echo begins; until [ -e {GO} ]; do sleep 0.1; done; echo ends"]
SLEEPS, ENDS, FAILS = ["sleep", "3600"], ["true"], ["sh", "-c", "exit 3"]
TPU, SLICE, L4 = {"type": "v5litepod-8"}, {"type": "v5litepod-16"}, {"type": "l4"}
LATER = "v5litepod-1"
"""What the stack declares and nobody has."""
PATIENCE_S = 90
CLAIMS, SPEND = "accel.jobs.claims", "accel.jobs.spend"


def submit_all(old: Old) -> None:
    """Submit every job, and wait until each is where it shall be found."""
    _with_claims(old)
    _with_files(old)
    _on_vms(old)
    _on_google_batch(old)
    _on_gke(old)


def _until(ready: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not ready():
        assert time.monotonic() < give_up
        time.sleep(0.2)


def _running(old: Old, *keys: str) -> None:
    for key in keys:
        _until(lambda key=key: old.got(key)["phase"] == "RUNNING")


def _with_claims(old: Old) -> None:
    """Of the services whose jobs have a claim."""
    for service, to in (("batch", "gpu"), ("vertex", "vertex")):
        old.submit(f"{service}-ended", to, ENDS, "--wait")
        old.submit(f"{service}-runs", to, SLEEPS)
        old.submit(f"{service}-claimed", to, ENDS, dies=f"{CLAIMS} claimed")
        old.submit(f"{service}-sent", to, SLEEPS, dies=f"{CLAIMS} sent")
        _in_ledger(old, service, to)


def _in_ledger(old: Old, service: str, to: str, **fields: Any) -> None:
    """Clients that died between the ledger and the service."""
    old.submit(f"{service}-held", to, ENDS, dies=f"{SPEND} held", **fields)
    old.submit(f"{service}-unrecorded", to, SLEEPS, dies=f"{SPEND} sent", **fields)


def _with_files(old: Old) -> None:
    """The targets of a stack that has neither a table nor a ledger: claims and holds are files of this machine."""
    path = old.home / "targets.json"
    shared = path.read_text()
    rows = json.loads(shared)
    for name in ("claim_table", "published"):
        rows["gpu"].pop(name)
    rows["gpu"]["allowances"].pop("ledger")
    path.write_text(json.dumps(rows))
    old.submit("file-ended", "gpu", ENDS, "--wait")
    old.submit("file-sent", "gpu", SLEEPS, dies=f"{CLAIMS} sent")
    old.submit("file-claimed", "gpu", ENDS, dies=f"{CLAIMS} claimed")
    path.write_text(shared)


def _on_vms(old: Old) -> None:
    """One machine, a group of two, a slice of several hosts."""
    old.submit("vm-ended", "vm", ENDS, "--wait")
    old.submit("vm-failed", "vm", FAILS, retries=0)
    old.submit("vm-cancelled", "vm", SLEEPS)
    old.submit("vm-moved", "vm", SLEEPS, spot=True, lost_retries=3)
    old.submit("vm-runs", "vm", FLAGGED)
    old.submit("vm-lost", "vm", FLAGGED, spot=True, lost_retries=3)
    old.submit("vm-nodes", "vm", FLAGGED, nodes=2, spot=True, lost_retries=3)
    _running(old, "vm-cancelled", "vm-moved", "vm-runs", "vm-lost", "vm-nodes")
    old.cli("tend", old.jobs["vm-runs"].ref)
    old.cli("cancel", old.jobs["vm-cancelled"].ref, "--yes")
    old.python("-m", "jobs", "wait", old.jobs["vm-failed"].ref, code=125)
    old.python("-m", "jobs", "wait", old.jobs["vm-cancelled"].ref, code=125)
    old.preempt("vm-moved")
    _until(lambda: bool(old.cli("tend", old.jobs["vm-moved"].ref)) and old.got("vm-moved")["attempts"] == 2)
    _running(old, "vm-moved")
    old.submit("vm-planned", "vm", SLEEPS, refused="compute.instances.insert")
    old.submit("tpu-runs", "tpu", SLEEPS, accelerator=TPU)
    old.submit("tpu-slice", "tpu", FLAGGED, accelerator=SLICE)
    _running(old, "tpu-runs", "tpu-slice")
    old.stockout(TPU["type"], LATER)
    old.submit("tpu-waits", "tpu", SLEEPS, accelerator=TPU)


def _on_google_batch(old: Old) -> None:
    service, to = "google-batch", "batch"
    old.submit(f"{service}-ended", to, ENDS, "--wait")
    old.submit(f"{service}-failed", to, FAILS, retries=0)
    old.submit(f"{service}-runs", to, FLAGGED)
    old.submit(f"{service}-sweep", to, FLAGGED, tasks=3, parallelism=2)
    old.submit(f"{service}-nodes", to, FLAGGED, nodes=2)
    _in_ledger(old, service, to)
    old.cli("wait", old.jobs[f"{service}-failed"].ref, code=125)
    _running(old, *(f"{service}-{job}" for job in ("runs", "sweep", "nodes")))


def _on_gke(old: Old) -> None:
    """A Job, an indexed one, one with a Service, a JobSet, one that Kueue does not admit yet."""
    cpu = {"cpus": 1, "memory_mib": 1024}
    spot = {"spot": True, "lost_retries": 2, "accelerator": L4, **cpu}
    old.submit("gke-ended", "gke", ENDS, "--wait", **cpu)
    old.submit("gke-failed", "gke", FAILS, retries=0, **cpu)
    old.submit("gke-sweep", "gke", FLAGGED, tasks=4, parallelism=4, **spot)
    old.submit("gke-nodes", "gke", FLAGGED, nodes=2, lost_retries=2, accelerator=L4, **cpu)
    old.submit("gke-slice", "gke", FLAGGED, lost_retries=2, accelerator={"type": "v5e-16"}, **cpu)
    _in_ledger(old, "gke", "gke", **cpu)
    old.cli("wait", old.jobs["gke-failed"].ref, code=125)
    _running(old, "gke-sweep", "gke-nodes", "gke-slice")
    _until(lambda: old.got("gke-sweep")["tasks"] == {"Running": 4})
    old.submit("gke-waits", "gke", ENDS, **spot)
    _until(lambda: "quota" in (old.got("gke-waits")["reason"] or ""))
