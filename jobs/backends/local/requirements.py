"""What this machine cannot run: fields that it cannot honour, more than it has, and a container without docker."""

import shlex
from pathlib import Path

from accel.diagnostics.errors import BadInputs, NoRuntime
from accel.rules.jobs import launchers

from ...model.job import Job
from ..base import Request
from . import docker, machine

IMAGES = "local/"
TASKS_MAX = 10_000
"""As many as an array of AWS Batch has: accel.rules.aws.jobs."""


def container(job: Job) -> bool:
    """Whether the job's image is a real one, which docker runs, and no folder."""
    return job.image is not None and not job.image.startswith(IMAGES)


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
    faults = machine.shortfalls(request.body, devices, kinds)
    if not Path(request.body["folder"]).is_dir():
        faults.append(f"image: the folder {request.body['folder']} does not exist")
    if faults:
        raise BadInputs([f"target {request.target}: {fault}" for fault in faults])


def cannot(job: Job) -> list[str]:
    """Return what this machine cannot honour of a job."""
    contained = container(job)
    refusals = {
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
    found = [fault for fault, applies in refusals.items() if applies]
    gpus = job.accelerator.count if job.accelerator else None
    shape = launchers.Shape(1, gpus)
    wrong = [each for each in launchers.check(job.command, job.env, shape) if each.severity == "reject"]
    found += [f"{each.field}: {each.text}" for each in wrong] if job.nodes == 1 else []
    return found + (docker.faults([(mount.source, mount.path) for mount in job.mounts]) if contained else [])
