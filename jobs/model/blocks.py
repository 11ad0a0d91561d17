"""Blocks of a job file for fields that only one platform has."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from accel.whole_numbers import INT_MAX

from .fields import Count, Part, Seconds


class Dependency(Part):
    """A job to wait for. Between arrays of one size, N_TO_N lets each task wait for the one with its own index;
    SEQUENTIAL, without a job, runs the tasks of this job one after the other."""

    job: str | None = Field(default=None, min_length=1, description="Job reference, or job id of AWS Batch")
    type: Literal["N_TO_N", "SEQUENTIAL"] | None = None


def _dependency(value: Any) -> Any:
    return {"job": value} if isinstance(value, str) else value


Waited = Annotated[Dependency, BeforeValidator(_dependency, json_schema_input_type=str | Dependency)]


class AwsBatch(Part):
    """Fields for AWS Batch only."""

    definition: str | None = Field(default=None, description="Name of the stack's job definition to use")
    share_identifier: str | None = Field(default=None, description="Share identifier, for fair-share queues only")
    scheduling_priority: int | None = Field(default=None, ge=0, le=9999, strict=True)
    depends_on: list[Waited] = Field(
        default_factory=list[Dependency],
        max_length=20,
        description="Jobs to wait for: a reference, or one with its type",
    )


class Gke(Part):
    """Fields for Google Kubernetes Engine only."""

    priority: str | None = Field(default=None, min_length=1, description="Priority, one of the target's")
    pools: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list[str], description="Keys of the target's pools to choose from. Default: all"
    )
    gpu_partition: str | None = Field(
        default=None, min_length=1, description="MIG profile of each accelerator, such as 1g.10gb"
    )
    gpu_sharing: Literal["time-sharing", "mps"] | None = Field(
        default=None, description="Use GPUs that pods share in this way. Default: whole GPUs"
    )
    user: int | None = Field(
        default=None,
        ge=0,
        le=INT_MAX,
        strict=True,
        description="User id that runs the command, such as 1000. Default: the image's",
    )
    grace_s: Seconds | None = Field(
        default=None, description="Time between SIGTERM and SIGKILL. Default: 30, or 15 if Spot nodes may run the job"
    )
    keep_s: Seconds = Field(default=7 * 86_400, description="Time that an ended job stays in the cluster: 7d, 12h")


class TpuVm(Part):
    """Fields for TPU VMs only. A job without `spot` runs on demand there, and a job without `lost_retries` is recreated
    up to three times after Google preempts its TPUs."""

    slices: Count = Field(
        default=1, description="Number of slices of accelerator.type, allocated together; they form one job"
    )
    topology: str | None = Field(
        default=None, min_length=1, description="Topology of a slice, such as 4x4x8, if its type has several"
    )
    runtime_version: str | None = Field(
        default=None, min_length=1, description="TPU software version. Default: that of the generation"
    )
    zones: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list[str], description="Zones of the target, in the order to try. Default: all"
    )
    zone_wait_s: Seconds | None = Field(
        default=None, description="Maximum wait in one zone before the next: 30m, 2h. Default: no limit"
    )
    valid_for_s: Seconds | None = Field(
        default=None, description="Time after which Google drops a request that it has not filled"
    )
    reserved: Annotated[bool, Field(strict=True)] | None = Field(
        default=None, description="Use a reservation. Default: true if the target has one and the job is not Spot"
    )
    grace_s: Seconds = Field(default=30, description="Time between SIGTERM and SIGKILL")


class Gce(Part):
    """Fields for GPU VMs of Compute Engine only."""

    machine_type: str | None = Field(
        default=None, min_length=1, description="Machine type. Default: the smallest that fits the job"
    )
    zones: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list[str], description="Zones of the target, in the order to try. Default: all"
    )
    provisioning: Literal["flex-start"] | None = Field(
        default=None, description="flex-start: wait for cheaper capacity, for at most seven days of run time"
    )
    max_run: Seconds | None = Field(
        default=None, description="Time after which machines are deleted: 12h, 7d. Default: some time after timeout_s"
    )
    grace_s: Seconds | None = Field(
        default=None, description="Time between SIGTERM and SIGKILL. Default: 30, or 20 on Spot machines without notice"
    )
    notice_s: Seconds | None = Field(
        default=None, description="Seconds between notice and stop of Spot machines; Google accepts 120"
    )
