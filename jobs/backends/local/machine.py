"""This machine as a place of jobs: what it cannot run of one, and what it has, which is looked up when a job is
submitted, never when it is rendered."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accel.diagnostics.errors import BadInputs, NoRuntime
from accel.folders import state
from accel.rules.jobs import launchers

from ...model.job import Job
from ..base import Request
from . import docker

IMAGES = "local/"
TASKS_MAX = 10_000
"""As many as an array of AWS Batch has: accel.rules.aws.jobs."""
_SHM = Path("/dev/shm")  # noqa: S108, looked at only


def is_contained(job: Job) -> bool:
    """Return whether the job's image is a real one, which docker runs, and no folder."""
    return job.image is not None and not job.image.startswith(IMAGES)


def refusals(job: Job) -> list[str]:
    """Return what this machine cannot honour of a job."""
    contained = is_contained(job)
    faults = {
        "command: is missing; a folder has no command of its own": not (job.command or contained),
        f"tasks: {job.tasks:,}: this machine runs at most {TASKS_MAX:,} of one job": job.tasks > TASKS_MAX,
        "nodes: this machine is one node": job.nodes > 1,
        "spot: this machine is not Spot capacity": bool(job.spot),
        "mounts: nothing is mounted here; the job sees this machine's files": bool(job.mounts) and not contained,
        "secrets: references are resolved by the cloud only; give the value with --env": bool(job.secrets),
        "aws_batch.depends_on: jobs on AWS Batch cannot be waited for here": bool(
            job.aws_batch and job.aws_batch.depends_on
        ),
    }
    found = [fault for fault, applies in faults.items() if applies]
    gpus = job.accelerator.count if job.accelerator else None
    shape = launchers.Shape(1, gpus)
    wrong = [each for each in launchers.check(job.command, job.env, shape) if each.severity == "reject"]
    found += [f"{each.field}: {each.text}" for each in wrong] if job.nodes == 1 else []
    return found + (docker.faults([(mount.source, mount.path) for mount in job.mounts]) if contained else [])


def check_runtime(request: Request) -> None:
    """Raise NoRuntime, with the command that would run the first task, where no container can be run here."""
    if (why := docker.absence()) is None:
        return
    body = request.body
    env = body["env"] | docker.task_variables(body, 0, 1)
    line = shlex.join(docker.command(body, f"accel-{request.name}", env, ()))
    raise NoRuntime(f"image: {body['image']}: {why}", f"a machine with docker runs it by: {line}")


def check(request: Request, devices: list[str], kinds: list[str]) -> None:
    """Raise BadInputs where this machine has less than the job asks for."""
    faults = _shortfalls(request.body, devices, kinds)
    if not Path(request.body["folder"]).is_dir():
        faults.append(f"image: the folder {request.body['folder']} does not exist")
    if faults:
        raise BadInputs([f"target {request.target}: {fault}" for fault in faults])


def gpus() -> tuple[list[str], list[str]]:
    """Ids for CUDA_VISIBLE_DEVICES, as far as this process may use them, and the names of the kinds."""
    command = ["nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return [], []
    if answer.returncode != 0:
        return [], []
    found = dict(line.split(", ", 1) for line in answer.stdout.splitlines() if ", " in line)
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    ids = list(found) if allowed is None else [one.strip() for one in allowed.split(",") if one.strip()]
    return ids, sorted(set(found.values()))


def cpus() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_mib() -> int:
    """All of it, in use or not."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20


def shm_mib() -> int:
    """Of the shared memory file system; 0 where there is none."""
    return shutil.disk_usage(_SHM).total // 2**20 if _SHM.exists() else 0


def disk_gib() -> int:
    """Free, where local jobs keep their output."""
    folder = state()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free // 2**30


_MEASURES: dict[str, Callable[[], int]] = {
    "cpus": cpus,
    "memory_mib": memory_mib,
    "shm_mib": shm_mib,
    "disk_gib": disk_gib,
}


def _shortfalls(body: dict[str, Any], devices: list[str], names: list[str]) -> list[str]:
    """Return what one task asks for and this machine does not have, a line each."""
    faults = [
        f"{field}: asks for {wanted}, this machine has {has}"
        for field, measure in _MEASURES.items()
        if (wanted := body[field]) is not None and wanted > (has := measure())
    ]
    accelerator: dict[str, Any] | None = body["accelerator"]
    if not accelerator:
        return faults
    if accelerator["count"] > len(devices):
        seen = f"{len(devices)} GPU(s) visible to nvidia-smi" if devices else "no GPU visible to nvidia-smi"
        faults.append(f"accelerator.count: asks for {accelerator['count']}, this machine has {seen}")
    elif accelerator["type"] and not any(_plain(accelerator["type"]) in _plain(name) for name in names):
        faults.append(f"accelerator.type: asks for {accelerator['type']}, this machine has {', '.join(names)}")
    return faults


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
