"""Jobs on machines of their own, on the sandbox: how soon a submit returns, the logs of 64 hosts as one, and an update
of 20 queued resources."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import indent
from typing import Any
from unittest.mock import patch

from accel.clouds.google.api import Google
from accel.contract.google_vms import TpuVmTarget
from jobs.backends.vm import labels as marks
from jobs.backends.vm.backend import new_record
from jobs.backends.vm.record import GONE, MADE, SUCCEEDED, Record
from jobs.backends.vm.records import folder
from jobs.backends.vm.tpu import TpuVmBackend
from jobs.backends.vm.tpu.queued_resources import queued_resource
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key

from .deployed import deploy, google_section, sandbox
from .measure import PYTHON, ROOT, Failed, Line, once_s, run

SUBMIT_S, LINES_A_SECOND, TIMES = 2.0, 10_000, 1.5
BEHIND_S = 4.0
"""Limit for the delay of a followed log: polls are 2 s apart, and reading what came meanwhile may take as long."""
HOSTS, EACH, BATCH = 64, 2_000, 250
ON_64 = "v5litepod-256"
"""Type of a slice of 64 hosts."""
REQUESTS, RUNS = 20, 4
HEAD = "import pulumi\nimport pulumi_gcp as gcp\n"
NOTHING = """pulumi.ComponentResource("accel:bench:Nothing", f"one-{index}").register_outputs({})
"""
QUEUED = """name = f"{pulumi.get_stack()}-{index}"
gcp.tpu.V2QueuedResource(name, name=name, project="accel-sandbox", zone="us-central1-a", tpu={"node_specs": [{
    "parent": "projects/accel-sandbox/locations/us-central1-a", "node_id": name,
    "node": {"runtime_version": "v2-alpha-tpuv5-lite", "accelerator_type": "v5litepod-4"}}]})
"""


def measure(scratch: Path) -> Iterator[Line]:
    """Write here what the jobs' machines would write."""
    with sandbox(scratch, ("cloud", "google", "plugins")) as (_, variables, _):
        values = google_section()
        place = {name: values["gcp"][name] for name in ("project", "region", "network", "vms")}
        deploy(scratch, variables, {**values, "gcp": place})
        with patch.dict(os.environ, variables):
            yield from _submits(scratch)
            yield from _logs()
            yield from _requests(scratch)


def _submits(scratch: Path) -> Iterator[Line]:
    kinds = {"tpu": {"type": "v5litepod-4"}, "vm": {"type": "l4", "count": 1}}
    for target, accelerator in kinds.items():
        job = {"name": "one", "image": "local/examples", "command": ["true"], "accelerator": accelerator}
        path = scratch / f"{target}.json"
        path.write_text(json.dumps(job))
        submit = (PYTHON, "-m", "jobs", "submit", path, "--to", target, "-o", "id")
        run(submit)
        started = time.perf_counter()
        run((*submit, "--key", f"{target}-{time.time_ns()}"))
        yield Line(f"submit to {target}, until its request is accepted", time.perf_counter() - started, "s",
                   limit=SUBMIT_S)  # fmt: skip


class Wide:
    """A job on 64 hosts that do not exist: its record, and what its machines would write."""

    def __init__(self, text: str) -> None:
        target = TpuVmTarget(**json.loads(Path(os.environ["ACCEL_TARGETS"]).read_text())["tpu"])
        wanted = {"name": text, "image": "local/examples", "command": ["true"], "accelerator": {"type": ON_64}}
        job = Job.model_validate(wanted)
        key = submission_key(job.name, text)
        self.backend = TpuVmBackend("tpu", target)
        self.google = Google()
        self.record: Record = new_record(self.backend.render(job, platform_name(job.name, key), key))
        self.begun = datetime.now(UTC)
        self.ref = f"tpu-vm:{self.backend.bucket}/{self.record.name}"

    def claim(self, **of_attempt: Any) -> None:
        """Put the record where clients look for it, with these values in its attempt."""
        self.record = self.record.with_last(made=self.begun.isoformat(), started=self.begun.isoformat(), **of_attempt)
        self.backend.records.claim(self.record)

    def machines(self) -> None:
        """Create the machines of the attempt, which run nothing, and wait for them."""
        body = queued_resource(self.record, self.record.last)
        del body["tpu"]["nodeSpec"][0]["node"]["metadata"]["startup-script"]
        place = body["tpu"]["nodeSpec"][0]["parent"]
        self.google.post("tpu", f"v2/{place}/queuedResources", body, queuedResourceId=self.record.last.name)
        while self.backend.machines().look(self.record, self.record.last).state != "running":
            time.sleep(0.1)

    def write(self, host: int, first: int, last: int) -> None:
        """Write lines of a host, as its agent does: one for each millisecond."""
        labels = {marks.JOB: self.record.name, marks.ATTEMPT: "1", marks.HOST: str(host)}
        name = f"{self.record.last.name}-{host}"
        entries = [
            {
                "insertId": f"{name}-{number:010d}",
                "timestamp": f"{self.begun + timedelta(milliseconds=number):%Y-%m-%dT%H:%M:%S.%fZ}",
                "severity": "DEFAULT",
                "textPayload": f"step {number} loss {1 / (number + 1):.6f} of a training run that says a little more",
            }
            for number in range(first, last)
        ]
        head = {"logName": f"projects/{self.record.body['project']}/logs/{marks.LOG}", "labels": labels}
        body = {**head, "resource": {"type": "global"}, "entries": entries, "partialSuccess": True}
        self.google.post("logging", "v2/entries:write", body)

    def end(self, host: int) -> None:
        now = datetime.now(UTC).isoformat()
        told = {"host": host, "exit_code": 0, "reason": "exited", "started": now, "stopped": now, "lines": EACH}
        path = f"{folder(self.record.name, 1)}/result-{host}.json"
        self.google.write(self.backend.bucket, path, json.dumps(told).encode(), generation=0)


def _logs() -> Iterator[Line]:
    count = HOSTS * EACH
    wide = Wide("ended")
    for host in range(HOSTS):
        wide.write(host, 0, EACH)
    now = wide.begun.isoformat()
    wide.record = replace(wide.record, ended=now, outcome=SUCCEEDED)
    wide.claim(state=GONE, outcome=SUCCEEDED, ended=now)
    started = time.perf_counter()
    printed = run((PYTHON, "-m", "jobs", "logs", wide.ref))
    took_s = time.perf_counter() - started
    _check(printed.splitlines())
    yield Line(f"logs of {HOSTS} hosts, {count} lines", took_s, "s", limit=count / LINES_A_SECOND)
    wide = Wide("followed")
    wide.claim(state=MADE)
    wide.machines()
    rate, behind_s = _followed(wide, count)
    name = f"the same with -f, while {rate:.0f} lines a second come: the last after it was written"
    yield Line(name, behind_s, "s", limit=BEHIND_S)


def _followed(wide: Wide, count: int) -> tuple[float, float]:
    """Return the lines written per second, and the seconds from the writing of the last one to its reading."""
    lines: list[str] = []
    command = (PYTHON, "-m", "jobs", "logs", "-f", wide.ref)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout
        wide.write(0, 0, 1)
        lines.append(follower.stdout.readline())
        writer = ThreadPoolExecutor(1)
        written = writer.submit(_write, wide)
        read = 0.0
        for line in follower.stdout:
            lines.append(line)
            read = time.perf_counter() if len(lines) == count else read
    if follower.returncode:
        raise Failed(f"jobs logs -f ended with {follower.returncode}")
    _check(lines)
    began, ended = written.result()
    return count / (ended - began), read - ended


def _write(wide: Wide) -> tuple[float, float]:
    """Write all hosts' other lines side by side, then their results. Return when the first and last were written."""
    began = time.perf_counter()
    batches = [(first, host) for first in range(0, EACH, BATCH) for host in range(HOSTS)]
    for index, (first, host) in enumerate(batches):
        time.sleep(max(0, began + index * BATCH / LINES_A_SECOND - time.perf_counter()))
        wide.write(host, first, first + BATCH)
    ended = time.perf_counter()
    for host in range(HOSTS):
        wide.end(host)
    return began, ended


def _check(lines: list[str]) -> None:
    """Raise Failed unless every line is there once, those of each host in order."""
    found: dict[str, list[int]] = {}
    for line in lines:
        if line.startswith("[node "):
            words = line.split()
            found.setdefault(words[1], []).append(int(words[3]))
    wrong = [host for host, numbers in found.items() if numbers != list(range(EACH))]
    if len(found) != HOSTS or wrong:
        raise Failed(f"lines of {len(found)} of {HOSTS} hosts were read, not whole or in order: {', '.join(wrong)}")


def _requests(scratch: Path) -> Iterator[Line]:
    kinds = {"queued": QUEUED, "nothing": NOTHING}
    took: dict[str, list[float]] = {name: [] for name in kinds}
    for name, resource in kinds.items():
        folder = scratch / name
        folder.mkdir()
        (folder / "Pulumi.yaml").write_text(f"name: {name}\nruntime: python\n")
        (folder / "__main__.py").write_text(f"{HEAD}for index in range({REQUESTS}):\n{indent(resource, '    ')}")
    for turn in range(RUNS):
        for name in kinds:
            run(("pulumi", "stack", "select", "--create", f"turn-{turn}"), scratch / name)
            update = ("pulumi", "up", "--stack", f"turn-{turn}", "--yes", "--skip-preview", "--non-interactive",
                      "--parallel", str(REQUESTS))  # fmt: skip  # by default, as many as there are processors, times 4
            took[name].append(once_s(update, scratch / name))
    queued_s, nothing_s = (statistics.median(took[name][1:]) for name in kinds)  # the first warms the caches
    yield Line(f"pulumi up of {REQUESTS} queued resources", queued_s, "s", f"that of {REQUESTS} components", nothing_s,
               limit=TIMES * nothing_s)  # fmt: skip
