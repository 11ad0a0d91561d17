"""The same program on three platforms, each of which takes its machine away once: it saves, is tried again, resumes and
ends; `watch` and the page about the job tell of both attempts."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.kubernetes.client import Cluster
from tests.support.drifted import control
from tests.support.engine import Sandbox
from tests.support.project import Stack
from tests.support.resuming import command
from tests.support.soak import sampled
from tests.support.waiting import until

from .conftest import Shell, shell_on
from .google import caller, preempt, status

PODS = "/api/v1/namespaces/jobs/pods"


@pytest.fixture
def shell(both: Stack, google: Sandbox, tmp_path: Path) -> Shell:
    return shell_on(google, both.folder / "targets.json", tmp_path)


def reclaim_on_aws(google: Sandbox, ref: str) -> None:
    control(google, "faults", {"kind": "reclaim", "job_id": ref.rpartition("/")[2]})


def reclaim_on_google_batch(google: Sandbox, ref: str) -> None:
    preempt(caller(google), ref)


def reclaim_on_gke(google: Sandbox, ref: str) -> None:
    """The node of the job's second pod: not that which writes the checkpoints."""
    cluster = Cluster.of(google.home)
    found = [one for one in cluster.list(PODS) if one["metadata"]["name"].startswith(f"{ref.rpartition('/')[2]}-")]
    (pod,) = [one for one in found if one["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1"]
    cluster.delete(f"/api/v1/nodes/{pod['spec']['nodeName']}")


Reclaim = Callable[[Sandbox, str], None]
TARGETS: dict[str, tuple[Reclaim, dict[str, Any]]] = {
    "spot": (reclaim_on_aws, {"lost_retries": 1}),
    "batch": (reclaim_on_google_batch, {"lost_retries": 1, "accelerator": {"type": "l4"}, "spot": True}),
    "gke": (reclaim_on_gke, {"nodes": 2, "accelerator": {"type": "l4"}, "spot": True}),
}


@pytest.mark.parametrize("target", sampled(TARGETS, ["spot", "batch"]))
def test_it_resumes_and_both_attempts_are_seen(target: str, shell: Shell, google: Sandbox, tmp_path: Path) -> None:
    reclaim, fields = TARGETS[target]
    job = {"name": f"resumes-{target}", "image": "local/examples", "command": command(tmp_path / "kept"), **fields}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump({**job, "cpus": 1, "memory_mib": 4096, "timeout_s": 900}))
    ref = shell.jobs("submit", str(tmp_path / "job.yaml"), "--to", target, "--no-quota", "-o", "id")
    said = watched(shell, ref, lambda: reclaim(google, ref))
    assert said[-1].startswith(f"{ref}: SUCCEEDED") and "cost $" in said[-1], said

    events = [line for line in shell.jobs("logs", ref, "--progress", "raw").splitlines() if '"event"' in line]
    assert [line for line in events if '"resume"' in line and "step-00000012-" in line], events
    row = status(shell, ref)
    assert (row["phase"], row["attempts"]) == ("SUCCEEDED", 2)

    shell.jobs("report", ref, "--out", str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text()
    nodes = [""] if "nodes" not in fields else ["node 0, ", "node 1, "]
    rows = [f">{node}attempt {number}<" for node in nodes for number in (1, 2)]
    for words in (*rows, 'class="lost"', 'class="good"', "its machine was taken away", "attempts were lost", "resume: ",
                  "USD, from the catalogue"):  # fmt: skip
        assert words in text, words
    for name in ("loss", "accuracy"):
        (drawn,) = [figure for figure in text.split("<figure>") if f"<h3>{name}</h3>" in figure]
        # The logs of a pod go with it.
        assert drawn.count("<polyline") == 2, "a curve of each attempt, or of each node that is still there"


def watched(shell: Shell, ref: str, reclaim: Callable[[], None]) -> list[str]:
    """What `watch` says until the job has ended; its machine is taken away once it has come to step 12 and whoever
    watches has seen it run."""
    watch, said = shell.start("jobs", "watch", ref), list[str]()
    assert watch.stdout and watch.stderr
    lines = watch.stdout
    reading = threading.Thread(target=lambda: said.extend(line.rstrip() for line in lines))
    reading.start()
    try:
        until(lambda: f"{ref}: RUNNING" in said and any(": 50% done, loss " in line for line in said))
        reclaim()
        until(lambda: watch.poll() is not None)
        assert watch.returncode == 0, (said, watch.stderr.read())
    finally:
        watch.kill()
        reading.join()
        watch.communicate()
    return said
