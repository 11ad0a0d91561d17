"""GKE on the sandbox: a submit, 500 of them until Kueue has admitted them, and how late a log is read."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import yaml

from sandbox.kubernetes.client import Cluster
from sandbox.processes import PARTS, running

from .deployed import deploy, google_section, sandbox
from .measure import PYTHON, ROOT, Failed, Line, run

JOBS = 500
SUBMIT_S, ADMITTED_S, START_S, RESIDENT_MIB, DELAY_S = 1.0, 60.0, 20.0, 1200.0, 1.0
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta1/workloads"
TELLING = "import time\nfor _ in range(40): print(time.time(), flush=True); time.sleep(0.1)"


def measure(scratch: Path) -> Iterator[Line]:
    """Time jobs in a pool that may grow to hold all of them. Their image is in no registry, so none runs."""
    with sandbox(scratch, PARTS) as (home, variables, start_s):
        yield Line("start of the sandbox with Google and Kubernetes", start_s, "s", limit=START_S)
        values = google_section()
        values["gcp"]["pools"]["system"] |= {"machine_type": "e2-standard-32", "max_nodes": 32}
        deploy(scratch, variables, values)
        resident = sum(
            each.memory_info().rss
            for part in running(home).values()
            for each in (part.process, *part.process.children(recursive=True))
        )
        yield Line("resident memory of it", resident / 2**20, "MiB", limit=RESIDENT_MIB)
        yield from _jobs(scratch, variables, Cluster.of(home))


def _jobs(scratch: Path, variables: dict[str, str], cluster: Cluster) -> Iterator[Line]:
    job = "name: job-{}\nimage: registry.example/train:1.0\ncommand: [train]\ncpus: 1\nmemory_mib: 512\n"
    (scratch / "one.yaml").write_text(job.format("one"))
    (scratch / "many.yaml").write_text("---\n".join(job.format(number) for number in range(JOBS)))
    submit = (PYTHON, "-m", "jobs", "submit", "--to", "gke", "--no-quota", "-o", "id")
    run((*submit, scratch / "one.yaml"), ROOT, variables)
    started = time.perf_counter()
    run((*submit, scratch / "one.yaml", "--key", "again"), ROOT, variables)
    yield Line("submit of a job", time.perf_counter() - started, "s", limit=SUBMIT_S)
    started = time.perf_counter()
    run((*submit, scratch / "many.yaml"), ROOT, variables)
    sent_s = time.perf_counter() - started
    yield Line(f"submit of {JOBS} jobs", sent_s, "s")
    while (count := _admitted(cluster)) < JOBS:
        if time.perf_counter() - started > 5 * ADMITTED_S:
            raise Failed(f"{count} of {JOBS} jobs are admitted")
        time.sleep(0.2)
    yield Line(f"{JOBS} jobs submitted and admitted", time.perf_counter() - started, "s", limit=ADMITTED_S)
    yield Line("the slowest line of a log that is followed", _delay(scratch, variables), "s", limit=DELAY_S)


def _admitted(cluster: Cluster) -> int:
    found = [one for each in cluster.list(WORKLOADS) for one in each.get("status", {}).get("conditions", [])]
    return sum(one["type"] == "Admitted" and one["status"] == "True" for one in found)


def _delay(scratch: Path, variables: dict[str, str]) -> float:
    document = {"name": "tells", "image": "local/examples", "command": ["python", "-c", TELLING]}
    (scratch / "tells.yaml").write_text(
        yaml.safe_dump({**document, "cpus": 1, "memory_mib": 512, "accelerator": {"type": "l4"}})
    )
    command = (PYTHON, "-m", "jobs", "submit", str(scratch / "tells.yaml"), "--to", "gke", "--follow", "-o", "id")
    read: list[tuple[float, float]] = []
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **variables, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True
    ) as follower:
        assert follower.stdout
        for line in follower.stdout:
            now = datetime.now(UTC).timestamp()
            word = line.split()[-1] if line.split() else ""
            if word.replace(".", "", 1).isdigit():
                read.append((float(word), now))
    if len(read) != 40:
        raise Failed(f"{len(read)} of 40 lines of the log were read")
    # What was told before it was seen that the job runs is no matter of the log.
    late = [now - told for told, now in read if told > read[0][1]]
    if not late:
        raise Failed("the job had ended when the first line of its log was read")
    return max(late)
