"""Jobs on Google Batch and Vertex AI, on the sandbox: rendering one, 100,000 tasks as one job, 1,000 submissions under
Vertex AI's limit, and the logs of many tasks as one."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import requests

from accel.clouds.google.api import Google
from accel.contract.google_jobs import VertexTarget
from jobs.backends.vertex import Timing, VertexBackend
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key

from .deployed import deploy, google_section, sandbox
from .measure import PYTHON, ROOT, Failed, Line, median_s, run

DRY_RUN_S, LINES_A_SECOND = 0.7, 10_000
PLACE = "projects/accel-sandbox/locations/us-central1"
LOG = "projects/accel-sandbox/logs/batch_task_logs"
TASKS, JOBS = 100_000, 200
TASKS_OF_LOG, LINES_OF_TASK = 20, 5_000
BEHIND_S, BATCH = 4.0, 500
"""Limit for the delay of a followed log: polls are 2 s apart, and reading what came meanwhile may take as long."""
MINUTE_S = 6.0
"""Seconds of a minute of the sandbox: a tenth of a real one, for the client too."""


def measure(scratch: Path) -> Iterator[Line]:
    with sandbox(scratch, ("cloud", "google", "plugins")) as (home, variables, _):
        values = google_section()
        place = {name: values["gcp"][name] for name in ("project", "region", "network", "batch", "vertex")}
        deploy(scratch, variables, {**values, "gcp": place})
        with patch.dict(os.environ, variables):
            yield from _dry_runs(scratch)
            yield from _tasks(scratch)
            yield from _logs(scratch)
            yield from _followed(scratch)
            yield from _submissions(json.loads((home / "google.json").read_text())["url"])


def _file(scratch: Path, name: str, **fields: Any) -> Path:
    path = scratch / f"{name}.json"
    path.write_text(json.dumps({"name": name, "image": "us-docker.pkg.dev/acme/train/one:1", **fields}))
    return path


def _dry_runs(scratch: Path) -> Iterator[Line]:
    path = _file(scratch, "dry", command=["true"], accelerator={"type": "l4", "count": 1})
    for target in ("batch", "vertex"):
        took_s = median_s((PYTHON, "-m", "jobs", "submit", path, "--to", target, "--dry-run"))
        yield Line(f"submit --dry-run to {target}", took_s, "s", limit=DRY_RUN_S)


def _tasks(scratch: Path) -> Iterator[Line]:
    path = _file(scratch, "many", command=["true"], tasks=TASKS)
    started = time.perf_counter()
    ref = run((PYTHON, "-m", "jobs", "submit", path, "--to", "batch", "-o", "id")).strip()
    yield Line(f"submit of {TASKS} tasks to batch", time.perf_counter() - started, "s", limit=5)
    started = time.perf_counter()
    run((PYTHON, "-m", "jobs", "get", ref))
    yield Line("get of that job", time.perf_counter() - started, "s", limit=2)


def _logs(scratch: Path) -> Iterator[Line]:
    code = f"import sys; sys.stdout.writelines(f'line {{i}}\\n' for i in range({LINES_OF_TASK}))"
    path = _file(scratch, "print", image="local/examples", command=["python", "-c", code], tasks=TASKS_OF_LOG)
    ref = run((PYTHON, "-m", "jobs", "submit", path, "--to", "batch", "--wait", "-o", "id")).strip()
    started = time.perf_counter()
    printed = run((PYTHON, "-m", "jobs", "logs", ref)).splitlines()
    took_s = time.perf_counter() - started
    count = TASKS_OF_LOG * LINES_OF_TASK
    if len(printed) != count or len(set(printed)) != count:
        raise Failed(f"{len(printed)} lines were read, {len(set(printed))} of them different, and {count} were written")
    yield Line(f"logs of {TASKS_OF_LOG} tasks, {count} lines", took_s, "s", limit=count / LINES_A_SECOND)


def _followed(scratch: Path) -> Iterator[Line]:
    """Follow the log of a running job, while lines of its tasks are written here as their VMs would."""
    gate = scratch / "gate"
    code = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.1)"
    path = _file(scratch, "follow", image="local/examples", command=["python", "-c", code])
    ref = run((PYTHON, "-m", "jobs", "submit", path, "--to", "batch", "-o", "id")).strip()
    google, name = Google(), ref.rpartition("/")[2]
    uid = google.get("batch", f"v1/{PLACE}/jobs/{name}")["uid"]
    count = TASKS_OF_LOG * LINES_OF_TASK
    command = (PYTHON, "-m", "jobs", "logs", "-f", ref)
    lines: list[str] = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout
        writer = ThreadPoolExecutor(1).submit(_write, google, uid, count, gate)
        read = 0.0
        for line in follower.stdout:
            lines.append(line)
            read = time.perf_counter() if len(lines) == count else read
    if follower.returncode or len(lines) != count or len(set(lines)) != count:
        raise Failed(f"{len(lines)} lines were read, {len(set(lines))} of them different, and {count} were written")
    began, ended = writer.result()
    name = f"logs -f while {count / (ended - began):.0f} lines a second come: the last after it was written"
    yield Line(name, read - ended, "s", limit=BEHIND_S)


def _write(google: Google, uid: str, count: int, gate: Path) -> tuple[float, float]:
    """Write the lines at a constant rate, then let the job end. Return when the first and the last were written."""
    began = time.perf_counter()
    for first in range(0, count, BATCH):
        time.sleep(max(0, began + first / LINES_A_SECOND - time.perf_counter()))
        now = datetime.now(UTC)
        entries = [
            {
                "insertId": f"{number:010d}",
                "timestamp": f"{now + timedelta(microseconds=number - first):%Y-%m-%dT%H:%M:%S.%fZ}",
                "textPayload": f"step {number} of a training run that says a little more",
                "labels": {"job_uid": uid, "task_id": f"{uid}-group0-{number % TASKS_OF_LOG}"},
            }
            for number in range(first, first + BATCH)
        ]
        head = {
            "logName": "projects/accel-sandbox/logs/batch_task_logs",
            "resource": {"type": "batch.googleapis.com/Job"},
        }
        google.post("logging", "v2/entries:write", {**head, "entries": entries, "partialSuccess": True})
    ended = time.perf_counter()
    gate.touch()
    return began, ended


def _submissions(url: str) -> Iterator[Line]:
    """Submit as fast as Vertex AI's limit lets one process, in minutes of MINUTE_S, and count what it refuses."""
    head = {"Authorization": f"Bearer {os.environ['GOOGLE_OAUTH_ACCESS_TOKEN']}"}
    paced = requests.post(f"{url}/sandbox-api/faults", json={"minute_s": MINUTE_S}, headers=head, timeout=10)
    paced.raise_for_status()
    target = VertexTarget(**json.loads(Path(os.environ["ACCEL_TARGETS"]).read_text())["vertex"])
    timing = Timing(window_s=MINUTE_S, lease_s=90, read_s=30)
    backend = VertexBackend("vertex", target, timing=timing)
    refused: Counter[int] = Counter()
    sent = requests.Session.request

    def counted(session: Any, *arguments: Any, **options: Any) -> Any:
        answer = sent(session, *arguments, **options)
        refused[answer.status_code] += 1
        return answer

    def one(number: int) -> str:
        job = Job.model_validate(
            {"name": f"one-{number}", "image": "us-docker.pkg.dev/acme/a/b:1", "command": ["true"]}
        )
        key = submission_key(job.name, "bench")
        return str(backend.submit(backend.render(job, platform_name(job.name, key), key)))

    started = time.perf_counter()
    with patch.object(requests.Session, "request", counted), ThreadPoolExecutor(backend.threads()) as pool:
        refs = set(pool.map(one, range(JOBS)))
    took_s = time.perf_counter() - started
    if len(refs) != JOBS or refused[429]:
        raise Failed(f"{len(refs)} of {JOBS} jobs were made, and {refused[429]} calls were refused")
    least_s = JOBS / timing.submits * MINUTE_S
    yield Line(f"submit of {JOBS} jobs to vertex, in minutes of {MINUTE_S:g} s", took_s, "s", "what its rate takes",
               least_s, limit=1.2 * least_s)  # fmt: skip
