"""Blocks of a job file for fields that only one platform has."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from .fields import Count, Part, Seconds


class Dependency(Part):
    """A job to wait for. Between arrays of one size, N_TO_N lets each task wait for the one with its own index;
    SEQUENTIAL, without a job, runs the tasks of this job one after the other."""

    job: str | None = Field(default=None, min_length=1, description="a job reference or a Batch job id")
    type: Literal["N_TO_N", "SEQUENTIAL"] | None = None


def _dependency(value: Any) -> Any:
    return {"job": value} if isinstance(value, str) else value


Waited = Annotated[Dependency, BeforeValidator(_dependency, json_schema_input_type=str | Dependency)]


class AwsBatch(Part):
    """Fields for AWS Batch only."""

    definition: str | None = Field(default=None, description="the stack's definition to use, by its name")
    share_identifier: str | None = Field(default=None, description="fair-share queues only")
    scheduling_priority: int | None = Field(default=None, ge=0, le=9999, strict=True)
    depends_on: list[Annotated[Dependency, BeforeValidator(_dependency, json_schema_input_type=str | Dependency)]] = (
        Field(default_factory=list[Dependency], max_length=20, description="a reference alone, or one with its type")
    )


class Gke(Part):
    """Fields for Google Kubernetes Engine only."""

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
    user: int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        strict=True,
        description="number of the user that the command runs as, 1000 or another; without it, the image's own",
    )
    grace_s: Seconds | None = Field(
        default=None, description="between SIGTERM and SIGKILL; without it 30, and 15 where Spot nodes may run the job"
    )
    keep_s: Seconds = Field(default=7 * 86_400, description="how long an ended job stays in the cluster: 7d, 12h")


class TpuVm(Part):
    """Fields for TPU VMs only. A job without `spot` runs on demand there, and a job without `lost_retries` is recreated
    up to three times after Google preempts its TPUs."""

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
    """Fields for GPU VMs of Compute Engine only."""

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
