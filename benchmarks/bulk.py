"""Many submits, and a long list, against an API that answers late and takes only so many calls a second."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .measure import PYTHON, ROOT, Line, run

DELAY_S = 0.1
SUBMITS = 1000
SERIAL = 100
"""Calls of the serial loop that are timed; the rest is extrapolated."""
RATE = 49
RAISED = 100
"""Calls a second that an account may have been granted: what the client can do where the rate is not what bounds it."""
OVER_RATE = 1.2
"""Limit as a multiple of what the rate alone takes: 20.4 s for 1,000 jobs, whatever answers how fast."""
LS_S = 2.0
ARN = "arn:aws:batch:us-east-1:210020003000"
TARGET: dict[str, Any] = {
    "kind": "aws-batch", "schema": 1, "region": "us-east-1", "queue_arn": f"{ARN}:job-queue/gpu",
    "environments": [{"name": "spot", "arn": f"{ARN}:compute-environment/spot", "capacity": "spot",
                      "instance_types": ["g5"], "max_vcpus": 192, "disk_gib": 200}],
    "definitions": {"train": {"arn": f"{ARN}:job-definition/train", "image": "registry.example/train:1.0", "vcpus": 4,
                              "memory_mib": 14000, "gpus": 1, "attempts": 3}},
    "definition_prefix": "accel", "log_group": "/accel", "job_role_arn": "arn:aws:iam::210020003000:role/job",
    "execution_role_arn": "arn:aws:iam::210020003000:role/execution", "claim_table": "claims",
}  # fmt: skip
SERIAL_LOOP = """
import boto3, sys, time
batch = boto3.client("batch", region_name="us-east-1")
started = time.perf_counter()
for number in range(int(sys.argv[1])):
    batch.submit_job(jobName=f"serial-{number}", jobQueue="gpu", jobDefinition="train")
print(time.perf_counter() - started)
"""


@contextmanager
def service(delay_s: float) -> Generator[str]:
    """Serve the fake API in a separate process, and yield its URL."""
    process = subprocess.Popen(
        (PYTHON, "-m", "benchmarks.fake_batch", str(delay_s)), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def ask(endpoint: str, path: str, document: dict[str, Any] | None = None) -> Any:
    connection = http.client.HTTPConnection(endpoint.removeprefix("http://"))
    connection.request("POST", f"/{path}", json.dumps(document or {}))
    return json.load(connection.getresponse())


def highest(times: list[float]) -> int:
    """Return the largest number of arrivals within a second."""
    ordered = sorted(times)
    return max(at - bisect_right(ordered, time - 1.0) + 1 for at, time in enumerate(ordered))


def measure(scratch: Path) -> Iterator[Line]:
    (scratch / "targets.json").write_text(json.dumps({"gpu": TARGET}))
    jobs = [f"name: job-{number}\ncommand: [python, train.py, --seed, '{number}']\n" for number in range(SUBMITS)]
    (scratch / "many.yaml").write_text("---\n".join(jobs))
    (scratch / "sweep.yaml").write_text("name: sweep\ncommand: [python, train.py]\ntasks: 10000\n")
    with service(DELAY_S) as endpoint:
        kept = {"PATH": os.environ["PATH"], "HOME": str(scratch), "XDG_CACHE_HOME": str(scratch / "cache")}
        variables = kept | {
            "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "LC_ALL": "C.UTF-8",
            "ACCEL_TARGETS": str(scratch / "targets.json"), "XDG_STATE_HOME": str(scratch / "state"),
        }  # fmt: skip

        def timed(*arguments: str) -> tuple[float, str]:
            started = time.perf_counter()
            out = run(("env", "-i", *(f"{k}={v}" for k, v in variables.items()), PYTHON, *arguments))
            return time.perf_counter() - started, out

        def submitted(file: str, *more: str, key: str = "k") -> tuple[float, list[str]]:
            asked = ("submit", str(scratch / file), "--no-quota", "--key", key, "-o", "id", *more)
            took, out = timed("-m", "jobs", *asked)
            return took, out.split()

        whole_s, loop_s = timed("-c", SERIAL_LOOP, str(SERIAL))
        serial_s = whole_s + float(loop_s) * (SUBMITS / SERIAL - 1)
        before = len(ask(endpoint, "calls")["submitjob"])
        took, refs = submitted("many.yaml")
        arrivals = ask(endpoint, "calls")["submitjob"][before:]
        peer = f"a serial boto3 loop, {SUBMITS / serial_s:.0f} a second"
        yield Line(f"submit of {SUBMITS} jobs", took, "s", peer, serial_s, OVER_RATE * SUBMITS / RATE)
        yield Line("highest rate of SubmitJob, as it arrives", highest(arrivals), "a second", "the rate it is sent at",
                   RATE)  # fmt: skip
        yield Line("SubmitJob calls refused for their rate", 100 * (len(arrivals) - SUBMITS) / SUBMITS, "%", limit=1)
        yield Line("jobs that a second run of the command makes", len(set(submitted("many.yaml")[1]) - set(refs)), "",
                   limit=0)  # fmt: skip
        ask(endpoint, "rate", {"per_s": RAISED})
        before = len(ask(endpoint, "calls")["submitjob"])
        took, _ = submitted("many.yaml", "--rate", str(RAISED - 1), key="raised")
        name = f"the same with --rate {RAISED - 1}, where {RAISED} are allowed"
        yield Line(name, took, "s", "the serial loop", serial_s, serial_s / 5)
        yield Line("highest rate of it", highest(ask(endpoint, "calls")["submitjob"][before:]), "a second", "the rate",
                   RAISED - 1)  # fmt: skip
        before = len(ask(endpoint, "calls")["submitjob"])
        took, _ = submitted("sweep.yaml")
        yield Line("submit of an array of 10,000 tasks", took, "s")
        yield Line("SubmitJob calls of it", len(ask(endpoint, "calls")["submitjob"]) - before, "", limit=1)
        ask(endpoint, "delay", {"s": 0})
        for count in (10_000, 12_500):
            ask(endpoint, "jobs", {"count": count})
            command = ("-m", "jobs", "ls", "-a", "-n", str(count), "-o", "id")
            timed(*command)
            took, out = timed(*command)
            if len(out.split()) != count:
                sys.stderr.write(f"ls names {len(out.split())} of {count} jobs\n")
            yield Line(f"ls of {count} jobs", took, "s", limit=LS_S)
