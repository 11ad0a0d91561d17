"""One job, on any backend: what a job file says."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from accel.contract.variables import RESERVED_PREFIXES

from .duration import WRITTEN, seconds

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
NAME_MAX = 100
"""AWS Batch takes 128; the rest is left for the submission key that idempotent submit appends."""
INT_MAX = 2**31 - 1
"""The services' integers have 32 bits."""


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    duration = seconds(value)
    if duration is None:
        raise ValueError(f"must be {WRITTEN}")
    return duration


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError("not the name of an environment variable: letters, digits and _, not beginning with a digit")
    if name.startswith(RESERVED_PREFIXES):
        raise ValueError(f"names that begin with {' or '.join(RESERVED_PREFIXES)} are set by the platform")
    return name


def _number_as_text(value: Any) -> Any:
    """5 becomes "5". A boolean or nothing is refused: how it was spelt is lost."""
    if isinstance(value, bool) or value is None:
        raise ValueError(
            f"must be text; YAML read it as {'nothing' if value is None else str(value).lower()}: quote it"
        )
    return str(value) if isinstance(value, int | float) else value


def _one_line(value: str) -> str:
    if re.search(r"[\n\r\0]", value):
        raise ValueError("the value holds a line break or NUL; put it into a file or a secret")
    return value


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("holds a NUL, which no program can be given")
    return value


Seconds = Annotated[int, BeforeValidator(_seconds), Field(ge=1, le=INT_MAX, strict=True)]
Count = Annotated[int, Field(ge=1, le=INT_MAX, strict=True)]
Argument = Annotated[str, AfterValidator(_no_nul)]
VariableName = Annotated[str, AfterValidator(_variable)]
VariableValue = Annotated[str, BeforeValidator(_number_as_text), AfterValidator(_one_line)]
Variables = dict[VariableName, VariableValue]


class Part(BaseModel):
    """A part of a job file: unknown keys are refused, values are not coerced from other types."""

    # The rejected value could be a secret that was pasted into the wrong field.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)


class Accelerator(Part):
    """GPUs of one task. `type` is any of the catalogue's names; without it, any GPU of the target will do. A TPU's type
    is a whole slice; `count` is then that of a host's chips, and may be left out."""

    type: str | None = Field(default=None, min_length=1)
    count: Count = 1


class Mount(Part):
    """Something made visible to the container at `path`."""

    source: str = Field(
        min_length=1,
        description="on AWS Batch efs://<file system id>[/folder], or host:///folder of the instance; on GKE "
        "volume://<key of the target's volumes>[/folder], or gs://<bucket>[/folder], which VMs take too",
    )
    path: str = Field(pattern=r"^/")
    read_only: bool = Field(default=False, strict=True)


class Dependency(Part):
    """A job to wait for. Between arrays of one size N_TO_N lets each task wait for the one with its own index;
    SEQUENTIAL, without a job, runs the tasks of this one one after the other."""

    job: str | None = Field(default=None, min_length=1, description="a job reference or a Batch job id")
    type: Literal["N_TO_N", "SEQUENTIAL"] | None = None


def _dependency(value: Any) -> Any:
    return {"job": value} if isinstance(value, str) else value


class AwsBatch(Part):
    """What only AWS Batch knows."""

    definition: str | None = Field(default=None, description="the stack's definition to use, by its name")
    share_identifier: str | None = Field(default=None, description="fair-share queues only")
    scheduling_priority: int | None = Field(default=None, ge=0, le=9999, strict=True)
    depends_on: list[Annotated[Dependency, BeforeValidator(_dependency)]] = Field(
        default_factory=list[Dependency], max_length=20, description="a reference alone, or one with its type"
    )


class Gke(Part):
    """What only Google Kubernetes Engine knows."""

    priority: str | None = Field(default=None, min_length=1, description="one of the target's priorities")
    pools: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list[str], description="the target's pools to choose from, by their keys; without any, all"
    )
    gpu_partition: str | None = Field(
        default=None, min_length=1, description="MIG profile that one of accelerator.count is, such as 1g.10gb"
    )
    gpu_sharing: Literal["time-sharing", "mps"] | None = Field(
        default=None, description="take GPUs that pods share in this way; without it, whole ones"
    )
    grace_s: Seconds | None = Field(
        default=None, description="between SIGTERM and SIGKILL; without it 30, and 15 where Spot nodes may run the job"
    )
    keep_s: Seconds = Field(default=7 * 86_400, description="how long an ended job stays in the cluster: 7d, 12h")


class TpuVm(Part):
    """What only TPU VMs know. There a job without `spot` is on demand, and one without `lost_retries` is made anew
    up to three times where Google took its TPUs away."""

    slices: Count = Field(default=1, description="of accelerator.type, all of them or none; they form one job")
    topology: str | None = Field(
        default=None, min_length=1, description="shape of a slice, such as 4x4x8, where its type has several"
    )
    runtime_version: str | None = Field(
        default=None, min_length=1, description="TPU software version; without it, that of the generation"
    )
    zones: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list[str], description="of the target's, in the order to try; without any, all"
    )
    zone_wait_s: Seconds | None = Field(
        default=None, description="how long to queue in a zone before the next: 30m, 2h; without it, for ever"
    )
    valid_for_s: Seconds | None = Field(
        default=None, description="Google gives up a request that it has not filled for so long"
    )
    reserved: Annotated[bool, Field(strict=True)] | None = Field(
        default=None, description="out of a reservation; without it, where the target has one and the job is not Spot"
    )
    grace_s: Seconds = Field(default=30, description="between SIGTERM and SIGKILL")


class Gce(Part):
    """What only GPU VMs of Compute Engine know."""

    machine_type: str | None = Field(
        default=None, min_length=1, description="without one, the smallest that has what the job asks for"
    )
    zones: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list[str], description="of the target's, in the order to try; without any, all"
    )
    provisioning: Literal["flex-start"] | None = Field(
        default=None, description="wait for capacity that is cheaper, and lasts for seven days at most"
    )
    max_run: Seconds | None = Field(
        default=None, description="machines are deleted after it: 12h, 7d; without it, some time after timeout_s"
    )
    grace_s: Seconds | None = Field(
        default=None, description="between SIGTERM and SIGKILL; without it 30, and 20 of Spot machines without notice"
    )
    notice_s: Seconds | None = Field(
        default=None, description="of Spot machines: seconds between notice and stop, of which Google knows 120"
    )


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

    @model_validator(mode="after")
    def _relations(self) -> "Job":
        faults = list(_unfit(self))
        if faults:
            raise ValueError("\n".join(faults))
        return self


BLOCKS = {"aws_batch": "aws-batch", "gke": "gke", "tpu_vm": "tpu-vm", "gce": "gce"}
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
