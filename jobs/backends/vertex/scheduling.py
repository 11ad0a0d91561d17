"""How a job's machines are had, and when it ends: strategy, reservation, persistent resource, retries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accel.contract.google_jobs import VertexTarget
from accel.rules import Finding
from accel.rules.vertex import machines as vertex_machines
from accel.rules.vertex import scheduling as vertex_scheduling

from ...model.blocks_google import Vertex
from ...model.job import Job
from .machines import VertexChoice

KEY = "compute.googleapis.com/reservation-name"


@dataclass(frozen=True)
class How:
    """What is asked for beside the machines. `strategy` is None on a persistent resource."""

    strategy: str | None
    reservation: str | None
    persistent: str | None


def how(job: Job, target: VertexTarget, choices: Sequence[VertexChoice], disks: bool) -> How:
    """`disks`: whether the job asks for disks of its own, which machines that are there already have not."""
    block = job.vertex or Vertex()
    strategy = "FLEX_START" if block.provisioning else "SPOT" if job.spot else "STANDARD"
    kept = block.persistent_resource
    if kept is None and strategy == "STANDARD" and not disks and not block.reservation and job.spot is None:
        kept = target.persistent_resource if _fit(target, choices) else None
    reservation = block.reservation
    if reservation is None and strategy == "STANDARD" and kept is None:
        reservation = target.reservation
    return How(None if kept and strategy == "STANDARD" else strategy, reservation, kept)


def _fit(target: VertexTarget, choices: Sequence[VertexChoice]) -> bool:
    return bool(choices) and all(each.key in target.persistent_machines for each in choices)


def findings(job: Job, target: VertexTarget, asked: How, choices: Sequence[VertexChoice]) -> list[Finding]:
    """What the rules say, in the job file's names."""
    block = job.vertex or Vertex()
    spot, flex = asked.strategy == "SPOT", asked.strategy == "FLEX_START"
    said: list[Finding] = []
    if flex and job.spot:
        said += vertex_scheduling.flex_with_spot("vertex.provisioning")
    if flex:
        machines = [(each.machine, each.gpu, each.gpus) for each in choices]
        said += vertex_scheduling.flex_start(machines, job.timeout_s, "vertex.provisioning")
    said += vertex_scheduling.wait(block.wait_s, flex, "vertex.wait_s")
    if asked.reservation:
        field = "vertex.reservation"
        said += vertex_scheduling.reservation(asked.reservation, target.region, field)
        said += vertex_scheduling.reservation_with(spot=spot, flex=flex, persistent=bool(asked.persistent), field=field)
    if asked.persistent:
        field = "vertex.persistent_resource"
        said += vertex_scheduling.persistent(asked.persistent, spot=spot, flex=flex, field=field)
    for each in choices:
        if each.tpu:
            said += vertex_scheduling.spot_tpu(each.tpu.slice, each.tpu.hosts, spot)
        elif not asked.persistent:
            said += vertex_machines.had(each.machine, asked.strategy, asked.reservation, "spot")
    said += vertex_scheduling.retries(job.retries, job.lost_retries)
    return said + vertex_scheduling.restart(block.restart, _once(job), "vertex.restart")


def _once(job: Job) -> bool:
    """Whether nothing shall be tried again."""
    return not job.retries and not job.lost_retries and (job.retries is not None or job.lost_retries is not None)


def scheduling(job: Job, asked: How, several: bool) -> dict[str, Any]:
    """Scheduling. Of several machines that work together all restart when one is lost, unless the job says otherwise.
    Source: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling"""
    block = job.vertex or Vertex()
    made: dict[str, Any] = {}
    if asked.strategy:
        made["strategy"] = asked.strategy
    if job.timeout_s:
        made["timeout"] = f"{job.timeout_s}s"
    if block.wait_s:
        made["maxWaitDuration"] = f"{block.wait_s}s"
    if _once(job):
        made["disableRetries"] = True
    elif block.restart or (block.restart is None and several):
        made["restartJobOnWorkerRestart"] = True
    return made


def affinity(asked: How) -> dict[str, Any]:
    """Of a MachineSpec."""
    if asked.reservation is None:
        return {}
    made = {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": KEY, "values": [asked.reservation]}
    return {"reservationAffinity": made}
