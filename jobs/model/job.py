"""One job for any backend: the contents of a job file."""

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from accel.diagnostics.errors import JobWarning
from accel.whole_numbers import INT_MAX

from ..runtime.sweep import count
from . import sweep
from .blocks import AwsBatch, Gce, Gke, TpuVm
from .blocks_google import GoogleBatch, Vertex
from .deadline import CHANGEOVER_S, shortest_deadline_s
from .fields import Accelerator, Argument, Count, Mount, Part, Seconds, Spot, Variables
from .sweep import Sweep
from .sweep_shell import size_faults

if TYPE_CHECKING:
    from .document import Document

Written = dict[str, Any]
"""A part of a job as a mapping, with the keys of a job file."""

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
NAME_MAX = 100
"""AWS Batch takes 128; the rest is left for the submission key that idempotent submit appends."""


class Job(Part):
    """A job. A backend that cannot honour a field refuses the job with the reason, and never drops the field."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, max_length=NAME_MAX)]
    image: str | None = Field(
        default=None, min_length=1, description="Container image. Default: that of the target's definition"
    )
    command: list[Argument] = Field(
        default_factory=list[str], description="Command as argv. Default: that of the definition or image"
    )
    requirements: Annotated[str, Field(min_length=1, max_length=4096)] | None = Field(
        default=None,
        description="requirements.txt beside the job file, whose packages are installed before the command "
        "(docs/code.md)",
    )
    accelerator: Accelerator | None = None
    cpus: Count | None = Field(default=None, description="vCPUs of one task")
    memory_mib: Annotated[int, Field(ge=4, le=INT_MAX, strict=True)] | None = None
    shm_mib: Count | None = Field(default=None, description="Shared memory, part of memory_mib")
    disk_gib: Count | None = None
    env: Variables = Field(default_factory=dict)
    secrets: Variables = Field(
        default_factory=dict, description="Variables by name, each a reference to a secret, never its value"
    )
    nodes: Count = Field(
        default=1, description="Machines that run the command together, each in its own container: docs/nodes.md"
    )
    tasks: Count = Field(
        default=1, description="Number of tasks; each finds its index in its environment. A sweep sets it"
    )
    parallelism: Count | None = Field(
        default=None, description="Maximum number of tasks at once. Default: all; for a sweep on Google Batch, 4"
    )
    sweep: Sweep | None = Field(default=None, description="One task for each combination of parameters: docs/sweeps.md")
    retries: Annotated[int, Field(ge=0, le=INT_MAX, strict=True)] | None = Field(
        default=None, description="Attempts after the first. Default: the definition's"
    )
    lost_retries: Annotated[int, Field(ge=0, le=INT_MAX, strict=True)] | None = Field(
        default=None,
        description="Attempts to replace those that the cloud lost (a preempted machine, a failed image pull). With "
        "it, `retries` counts the command's own failures only, and its default is 0",
    )
    timeout_s: Seconds | None = Field(default=None, description="Timeout of one attempt: 14400, 4h, 90m")
    spot: Spot | None = Field(
        default=None,
        description="true: Spot only; false: on demand only; prefer: Spot while the deadline allows it, then on demand "
        "(docs/deadline.md). Default: either",
    )
    deadline: Seconds | None = Field(
        default=None, description="With `spot: prefer`: time from submission to the end of the job, such as 8h or 2d"
    )
    work_s: Seconds | None = Field(
        default=None,
        description="With `deadline`: run time of the whole job on one undisturbed machine. Default: timeout_s",
    )
    changeover_s: Seconds | None = Field(
        default=None,
        description="With `deadline`: maximum time to stop, start on demand, restore the last checkpoint and repeat "
        "the work since then. Default: 15m",
    )
    labels: dict[str, str] = Field(default_factory=dict)
    mounts: list[Mount] = Field(default_factory=list[Mount])
    aws_batch: AwsBatch | None = None
    gke: Gke | None = None
    tpu_vm: TpuVm | None = None
    gce: Gce | None = None
    google_batch: GoogleBatch | None = None
    vertex: Vertex | None = None

    if TYPE_CHECKING:  # parts may also be mappings as in a job file, which pydantic's own signature does not allow

        def __init__(
            self,
            *,
            name: str,
            image: str | None = None,
            command: Sequence[str] = (),
            requirements: str | None = None,
            accelerator: Accelerator | Written | None = None,
            cpus: int | None = None,
            memory_mib: int | None = None,
            shm_mib: int | None = None,
            disk_gib: int | None = None,
            env: Mapping[str, str | int | float] = {},
            secrets: Mapping[str, str] = {},
            nodes: int = 1,
            tasks: int = 1,
            parallelism: int | None = None,
            sweep: Sweep | Written | None = None,
            retries: int | None = None,
            lost_retries: int | None = None,
            timeout_s: int | str | None = None,
            spot: bool | Literal["prefer"] | None = None,
            deadline: int | str | None = None,
            work_s: int | str | None = None,
            changeover_s: int | str | None = None,
            labels: Mapping[str, str] = {},
            mounts: Sequence[Mount | Written] = (),
            aws_batch: AwsBatch | Written | None = None,
            gke: Gke | Written | None = None,
            tpu_vm: TpuVm | Written | None = None,
            gce: Gce | Written | None = None,
            google_batch: GoogleBatch | Written | None = None,
            vertex: Vertex | Written | None = None,
        ) -> None:
            """Check the fields. Raises BadInputs with a line for each fault."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Job":
        """Read the only job of a file. Raises NotFound, and BadInputs with each fault and its line."""
        from .arguments import path as checked
        from .document import read

        return _said(read(checked("path", path), Job)).job()

    @classmethod
    def read_all(cls, path: str | os.PathLike[str]) -> "list[Job]":
        """Read the job of each YAML document of a file. Raises as `read`."""
        from .arguments import path as checked
        from .document import jobs_of, read_all

        return jobs_of([_said(document) for document in read_all(checked("path", path), Job)])

    def but(self, **fields: Any) -> "Job":
        """Return a copy with other values of some fields. Raises BadInputs."""
        return type(self)(**{**self.model_dump(exclude_unset=True), **fields})

    @model_validator(mode="after")
    def _relations(self) -> "Job":
        faults = _swept(self) if self.sweep else []
        faults += _unfit(self)
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


def unused_blocks(job: Job, kind: str) -> tuple[str, ...]:
    return tuple(
        f"{block}: is for targets of kind {of} and does nothing here"
        for block, of in BLOCKS.items()
        if of != kind and getattr(job, block) is not None
    )


def _swept(job: Job) -> list[str]:
    """Set `tasks` to the number of the sweep's combinations. Return faults, each `<path>: <words>`."""
    assert job.sweep is not None
    if faults := sweep.faults(job.sweep):
        return faults
    combinations = count(sweep.sweep_spec(job.sweep))
    if "tasks" in job.model_fields_set and job.tasks != combinations:
        faults.append(f"tasks: {job.tasks} tasks, {combinations} combinations of the sweep; leave tasks out")
    object.__setattr__(job, "tasks", combinations)  # the model is frozen for everyone else
    if job.sweep.shell and not job.command:
        faults.append("command: is missing; a sweep exports its parameters before it, or shell: false")
    if job.nodes > 1 and combinations == 1:
        faults.append(f"sweep: is of tasks, and the job has {job.nodes} nodes")
    faults += sweep.clashes(job.sweep, {"env": job.env, "secrets": job.secrets})
    return faults + size_faults(job.sweep)


def prefers(job: Job) -> tuple[str, ...]:
    """Return the fault of `spot: prefer` on a target whose jobs cannot move to on demand."""
    kinds = "aws-batch, google-batch and gke"
    return (f"spot: prefer is for targets of kind {kinds}",) if job.spot == "prefer" else ()


def _said(document: "Document[Job]") -> "Document[Job]":
    for note in document.notes:
        warnings.warn(note, JobWarning, stacklevel=4)
    return document


def _unfit(job: Job) -> list[str]:
    """Return faults between fields, each `<path>: <words>`."""
    faults = [f"secrets.{name}: is in env too; keep one" for name in sorted(job.env.keys() & job.secrets.keys())]
    if job.parallelism is not None and job.parallelism > job.tasks:
        faults.append(f"parallelism: {job.parallelism} is above tasks, {job.tasks}")
    if job.nodes > 1 and job.tasks > 1:
        faults.append(f"nodes: {job.nodes} with {job.tasks} tasks: a job has several nodes or several tasks")
    if job.shm_mib and job.memory_mib and job.shm_mib > job.memory_mib:
        faults.append(f"shm_mib: {job.shm_mib} is above memory_mib, {job.memory_mib}, which it is part of")
    faults += _late(job)
    paths = [mount.path for mount in job.mounts]
    faults += [
        f"mounts.{index}.path: {path} is mounted twice" for index, path in enumerate(paths) if path in paths[:index]
    ]
    return faults


def _late(job: Job) -> list[str]:
    if job.spot != "prefer" or job.deadline is None:
        beside = [name for name in ("deadline", "work_s", "changeover_s") if getattr(job, name) is not None]
        if job.spot != "prefer":
            return [f"{name}: is for a job with spot: prefer" for name in beside]
        return ["spot: prefer is Spot for as long as a deadline allows it: write deadline"]
    if job.tasks > 1 and job.sweep is None:
        return [f"deadline: is for a job of one task, or for a sweep, and this has {job.tasks} tasks"]
    work_s = job.work_s or job.timeout_s
    if work_s is None:
        return ["deadline: how much there is to do must be known: write work_s, or timeout_s"]
    changeover_s = job.changeover_s or CHANGEOVER_S
    if job.deadline >= (needed := shortest_deadline_s(work_s, changeover_s)):
        return []
    told = f"{'work_s' if job.work_s else 'timeout_s'} {work_s} and changeover_s {changeover_s} need {needed:.0f}"
    return [f"deadline: {job.deadline} leaves no time for Spot: {told}; write spot: false, or a later deadline"]
