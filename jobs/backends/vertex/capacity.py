"""Capacity for the machines of a job: on demand, Spot, flex-start, reserved, or a persistent resource."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accel.contract.google_jobs import VertexTarget

from ...model.blocks_google import Vertex
from ...model.job import Job
from .machines import VertexChoice

KEY = "compute.googleapis.com/reservation-name"


@dataclass(frozen=True)
class Capacity:
    """Capacity options of a job. `strategy` is None on a persistent resource."""

    strategy: str | None
    reservation: str | None
    persistent: str | None

    @property
    def spot(self) -> bool:
        return self.strategy == "SPOT"

    @property
    def flex(self) -> bool:
        return self.strategy == "FLEX_START"


def choose(job: Job, target: VertexTarget, choices: Sequence[VertexChoice], *, disks: bool) -> Capacity:
    """Return the job's capacity, or else the target's if it fits. `disks`: the job asks for disks of its own, which
    existing machines do not have."""
    block = job.vertex or Vertex()
    strategy = "FLEX_START" if block.provisioning else "SPOT" if job.spot else "STANDARD"
    persistent, reservation = block.persistent_resource, block.reservation
    if strategy == "STANDARD":
        plain = not disks and not reservation and job.spot is None
        if persistent is None and plain and _fit(target, choices):
            persistent = target.persistent_resource
        if persistent is None and reservation is None:
            reservation = target.reservation
        if persistent:
            return Capacity(None, reservation, persistent)
    return Capacity(strategy, reservation, persistent)


def _fit(target: VertexTarget, choices: Sequence[VertexChoice]) -> bool:
    return bool(choices) and all(each.key in target.persistent_machines for each in choices)


def tries_once(job: Job) -> bool:
    return not job.retries and not job.lost_retries and (job.retries is not None or job.lost_retries is not None)


def scheduling(job: Job, capacity: Capacity, *, several: bool) -> dict[str, Any]:
    """Return the Scheduling. If one of `several` machines that work together is lost, all restart, unless the job says
    otherwise. Source: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling"""
    block = job.vertex or Vertex()
    fields: dict[str, Any] = {}
    if capacity.strategy:
        fields["strategy"] = capacity.strategy
    if job.timeout_s:
        fields["timeout"] = f"{job.timeout_s}s"
    if block.wait_s:
        fields["maxWaitDuration"] = f"{block.wait_s}s"
    if tries_once(job):
        fields["disableRetries"] = True
    elif block.restart or (block.restart is None and several):
        fields["restartJobOnWorkerRestart"] = True
    return fields


def affinity(capacity: Capacity) -> dict[str, Any]:
    if capacity.reservation is None:
        return {}
    fields = {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": KEY, "values": [capacity.reservation]}
    return {"reservationAffinity": fields}
