"""The jobs of `make up`: one on each target at once, with a table while they run, a log, and a summary.

    python -m sandbox.first_jobs JOB.yaml

`V=1` shows every log. Ends with the code of the first command that failed.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from accel.console.output import table
from accel.console.terminal_text import lasting

COMMAND = Path(sys.executable).with_name("jobs")
ON_TPUS = ("--set", "accelerator.type=v5litepod-4")
"""A job on TPU VMs names its slice."""
COLUMNS = ("target", "kind", "phase", "waited", "ran", "would have cost")
NEXT = """
Try next, after `eval "$(.venv/bin/sandbox env)"`:
  accel-jobs report {ref} --out job.html
  accel-jobs submit examples/jobs/digits-sweep.yaml --to {target} --wait
  accel-jobs ls --all"""


@dataclass(frozen=True)
class Submission:
    """Result of a submit to a target: a reference, or an exit code and a message."""

    target: str
    kind: str
    ref: str
    code: int
    said: str


def main(job: str) -> int:
    targets = json.loads(Path(os.environ["ACCEL_TARGETS"]).read_text())
    kinds = {name: target["kind"] for name, target in targets.items()}
    names = sorted(kinds, key=lambda name: kinds[name] != "aws-batch")  # the first one's log is shown
    with ThreadPoolExecutor() as pool:
        sent = list(pool.map(lambda name: submit(job, name, kinds[name]), names))
    for one in sent:
        if one.code:
            sys.stderr.write(one.said)
    code = next((one.code for one in sent if one.code), 0)
    sent = [one for one in sent if one.ref]
    if not sent:
        return code
    ended = subprocess.run([COMMAND, "watch", *(one.ref for one in sent)], check=False).returncode
    for one in sent if os.environ.get("V") else sent[:1]:
        click.echo(f"\nlog of the job on {one.target}:")
        subprocess.run([COMMAND, "logs", one.ref], check=False)
    click.echo()
    table(rows(sent), COLUMNS)
    click.echo(NEXT.format(ref=sent[0].ref, target=sent[0].target))
    return code or ended


def submit(job: str, target: str, kind: str) -> Submission:
    words = [COMMAND, "submit", job, "--to", target, "-o", "id", *(ON_TPUS if kind == "tpu-vm" else ())]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return Submission(target, kind, done.stdout.strip(), done.returncode, done.stderr)


def rows(sent: Sequence[Submission]) -> list[dict[str, Any]]:
    listed = subprocess.run([COMMAND, "ls", "--all", "-o", "json"], capture_output=True, text=True, check=False)
    known = {job["ref"]: job for job in json.loads(listed.stdout or "[]")}
    return [row(one, known.get(one.ref, {})) for one in sent]


def row(one: Submission, job: dict[str, Any]) -> dict[str, Any]:
    low, high = job.get("cost_usd") or (None, None)
    return {
        "target": one.target,
        "kind": one.kind,
        "phase": job.get("phase", "-"),
        "waited": between(job.get("created"), job.get("started")),
        "ran": between(job.get("started"), job.get("stopped")),
        "would have cost": "-" if low is None else f"${low:.4f}" if low == high else f"${low:.4f} to {high:.4f}",
    }


def between(begin: str | None, end: str | None) -> str:
    if not begin or not end:
        return "-"
    return lasting((datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds())


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)  # the command that ran has said that the jobs go on
