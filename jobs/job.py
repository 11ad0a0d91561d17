"""One job, on any backend: what a job file says."""

from typing import Annotated

from pydantic import Field, model_validator

from .blocks import AwsBatch, Gce, Gke, TpuVm
from .blocks_google import GoogleBatch, Vertex
from .fields import INT_MAX, Accelerator, Argument, Count, Mount, Part, Seconds, Variables

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
NAME_MAX = 100
"""AWS Batch takes 128; the rest is left for the submission key that idempotent submit appends."""


class Job(Part):
    """A job. A field that a backend cannot honour is refused by it with the reason, never dropped."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, max_length=NAME_MAX)]
    image: str | None = Field(default=None, min_length=1, description="without one, that of the target's definition")
    command: list[Argument] = Field(
        default_factory=list[str], description="argv; without one, the image's or definition's own"
    )
    accelerator: Accelerator | None = None
    cpus: Count | None = Field(default=None, description="vCPUs of one task")
    memory_mib: Annotated[int, Field(ge=4, le=INT_MAX, strict=True)] | None = None
    shm_mib: Count | None = Field(default=None, description="shared memory, part of memory_mib")
    disk_gib: Count | None = None
    env: Variables = Field(default_factory=dict)
    secrets: Variables = Field(default_factory=dict, description="variable name to a reference, never a value")
    nodes: Count = Field(
        default=1, description="machines that run the command at once, each in a container of its own: docs/nodes.md"
    )
    tasks: Count = 1
    parallelism: Count | None = Field(default=None, description="tasks at once; without it, all")
    retries: Annotated[int, Field(ge=0, le=INT_MAX, strict=True)] | None = Field(
        default=None, description="attempts after the first; without it, the definition's"
    )
    lost_retries: Annotated[int, Field(ge=0, le=INT_MAX, strict=True)] | None = Field(
        default=None,
        description="attempts for those that the cloud took away (a reclaimed instance, a failed pull); `retries` is "
        "then for the command's own failures, and 0 without it",
    )
    timeout_s: Seconds | None = Field(default=None, description="of one attempt: 14400, 4h, 90m")
    spot: Annotated[bool, Field(strict=True)] | None = Field(
        default=None, description="true: Spot only; false: on demand only; absent: either"
    )
    labels: dict[str, str] = Field(default_factory=dict)
    mounts: list[Mount] = Field(default_factory=list[Mount])
    aws_batch: AwsBatch | None = None
    gke: Gke | None = None
    tpu_vm: TpuVm | None = None
    gce: Gce | None = None
    google_batch: GoogleBatch | None = None
    vertex: Vertex | None = None

    @model_validator(mode="after")
    def _relations(self) -> "Job":
        faults = list(_unfit(self))
        if faults:
            raise ValueError("\n".join(faults))
        return self


BLOCKS = {
    "aws_batch": "aws-batch",
    "gke": "gke",
    "tpu_vm": "tpu-vm",
    "gce": "gce",
    "google_batch": "google-batch",
    "vertex": "vertex",
}
"""A job's blocks of one cloud, and the kind of target that each is for."""


def unused_blocks(job: Job, kind: str) -> tuple[str, ...]:
    """A warning for each block that is for targets of another kind."""
    return tuple(
        f"{block}: is for targets of kind {of} and does nothing here"
        for block, of in BLOCKS.items()
        if of != kind and getattr(job, block) is not None
    )


def _unfit(job: Job) -> list[str]:
    """What is wrong between fields, each `<path>: <words>`."""
    faults = [f"secrets.{name}: is in env too; keep one" for name in sorted(job.env.keys() & job.secrets.keys())]
    if job.parallelism is not None and job.parallelism > job.tasks:
        faults.append(f"parallelism: {job.parallelism} is above tasks, {job.tasks}")
    if job.nodes > 1 and job.tasks > 1:
        faults.append(f"nodes: {job.nodes} with {job.tasks} tasks: a job has several nodes or several tasks")
    if job.shm_mib and job.memory_mib and job.shm_mib > job.memory_mib:
        faults.append(f"shm_mib: {job.shm_mib} is above memory_mib, {job.memory_mib}, which it is part of")
    paths = [mount.path for mount in job.mounts]
    faults += [
        f"mounts.{index}.path: {path} is mounted twice" for index, path in enumerate(paths) if path in paths[:index]
    ]
    return faults
