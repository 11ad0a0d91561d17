"""A job as a custom job of Vertex AI, with how its machines are had and when it ends. Pure.

The body is {"parent": ..., "customJob": CustomJob}. Source:
https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from accel.contract import buckets
from accel.contract.google_jobs import VertexTarget
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.errors import BadInputs
from accel.rules import Finding
from accel.rules.gcp import gpu_vm_jobs, vms
from accel.rules.gcp import labels as gcp_labels
from accel.rules.jobs import containers, launchers, placeholders
from accel.rules.vertex import jobs
from accel.rules.vertex import machines as vertex_machines
from accel.rules.vertex import scheduling as vertex_scheduling

from ...model import sweep_tasks
from ...model.blocks_google import Vertex
from ...model.job import Job, prefers, unused_blocks
from ..base import Request
from . import labels, pools
from .containers import Node, task
from .labels import KIND, Scope
from .machines import VertexChoice
from .nodes import PORT
from .pools import Planned

KEY = "compute.googleapis.com/reservation-name"


@dataclass(frozen=True)
class How:
    """What is asked for beside the machines. `strategy` is None on a persistent resource."""

    strategy: str | None
    reservation: str | None
    persistent: str | None


OWN_VARIABLES = 17
"""That a container is told at most, beside the job's."""
OWN_LABELS = 5
"""That jobs are marked with, beside the target's and their own."""


def render(
    job: Job, name: str, key: str, target_name: str, target: VertexTarget, *, today: date | None = None
) -> Request:
    """The request for a job; `today` decides whether an image is still to be had.

    Raises BadInputs with every field that cannot be honoured.
    """
    diagnostics = Diagnostics([*prefers(job), *sweep_tasks.together(job)], unused_blocks(job, KIND))
    diagnostics.add(_asked(job, target))
    found = pools.plan(job, target, today or date.today(), diagnostics)
    choices = [each.choice for each in found.values()]
    disks = any(each.disk_gb for each in found.values()) or bool(job.vertex and job.vertex.disk_type)
    how = _how(job, target, choices, disks)
    if found:
        diagnostics.add(_scheduling_findings(job, target, how, choices))
    if diagnostics.errors:
        raise BadInputs(list(dict.fromkeys(diagnostics.errors)))
    made = {
        "displayName": name,
        "labels": {**target.labels, **gcp_labels.translated(job.labels)},
        "jobSpec": _spec(job, name, target, found, how),
    }
    body = {
        "parent": Scope(target.project, target.region).parent,
        "customJob": labels.labelled(made, job.name, key, target_name),
    }
    return Request(KIND, target_name, name, key, body, tuple(dict.fromkeys(diagnostics.warnings)))


def _asked(job: Job, target: VertexTarget) -> list[Finding]:
    """What the rules say of all but machines, images and scheduling."""
    block = job.vertex or Vertex()
    variables = {**job.env, **job.secrets}
    networked = bool(target.network_attachment or target.network)
    found = (
        containers.environment(job.env)
        + gpu_vm_jobs.environment(variables)
        + jobs.environment(variables, own=OWN_VARIABLES)
    )
    found += [finding for name in sorted(job.secrets) for finding in jobs.secret(name, target.project)]
    gpus = job.accelerator.count if job.accelerator else None
    found += launchers.check([*job.command, *block.args], job.env, launchers.Shape(job.nodes, gpus))
    found += jobs.tasks(job.tasks) + jobs.shm(job.shm_mib)
    shares = [mount.path for mount in job.mounts if mount.source.startswith("nfs://")]
    found += jobs.local_output([*job.command, *block.args], job.env, shares)
    found += [each for name, text in job.env.items() for each in placeholders.addresses(f"env.{name}", [text])]
    found += placeholders.addresses("vertex.output", [block.output or ""])
    for i, mount in enumerate(job.mounts):
        at = f"mounts[{i}]"
        found += jobs.mount(mount.source, mount.path, read_only=mount.read_only, networked=networked, at=at)
    board = block.tensorboard or target.tensorboard
    found += jobs.tensorboard(board, target.service_account, target.region, "vertex.tensorboard")
    found += vms.own_keys(job.labels, ())
    return found + gcp_labels.labels(job.labels, own=OWN_LABELS + len(target.labels))


def _spec(job: Job, name: str, target: VertexTarget, found: Mapping[int, Planned], how: How) -> dict[str, Any]:
    """CustomJobSpec."""
    block = job.vertex or Vertex()
    several = 1 in found
    made: dict[str, Any] = {
        # A place that no pool has is an empty one: what a pool is for is told by its place.
        "workerPoolSpecs": [
            _pool(job, name, place, found, how) if place in found else {} for place in range(max(found) + 1)
        ],
        "scheduling": _scheduling(job, how, several),
        "serviceAccount": target.service_account,
        "baseOutputDirectory": {"outputUriPrefix": block.output or f"gs://{target.bucket}/{buckets.JOBS}/{name}"},
    }
    if how.persistent:
        made["persistentResourceId"] = how.persistent
    if target.network_attachment:
        made["pscInterfaceConfig"] = {"networkAttachment": target.network_attachment}
    elif target.network:
        made["network"] = target.network
    if board := block.tensorboard or target.tensorboard:
        made["tensorboard"] = board
    if block.web_access:
        made["enableWebAccess"] = True
    if block.dashboard_access:
        made["enableDashboardAccess"] = True
    return made


def _pool(job: Job, name: str, place: int, found: Mapping[int, Planned], how: How) -> dict[str, Any]:
    """WorkerPoolSpec."""
    planned = found[place]
    machine = planned.choice.spec()
    if planned.choice == found[0].choice:
        machine |= _affinity(how)  # other machines are not of the reservation
    made: dict[str, Any] = {"machineSpec": machine, "replicaCount": str(planned.replicas)}
    disk = {"bootDiskType": planned.disk_type, "bootDiskSizeGb": planned.disk_gb}
    if disk := {field: value for field, value in disk.items() if value}:
        made["diskSpec"] = disk
    if shares := _shares(job):
        made["nfsMounts"] = shares
    node = None
    if place < 2 and 1 in found:
        count = found[0].replicas + found[1].replicas
        node = Node(count, planned.choice.gpus, job.env.get("MASTER_PORT", str(PORT)))
    return made | task(planned.program, job, name, node)


def _shares(job: Job) -> list[dict[str, str]]:
    """NfsMounts. A bucket is there without one."""
    found: list[dict[str, str]] = []
    for mount in job.mounts:
        if mount.source.startswith("nfs://"):
            server, _, path = mount.source.removeprefix("nfs://").partition("/")
            folder = mount.path.removeprefix(jobs.NFS_ROOT).rstrip("/")
            found.append({"server": server, "path": f"/{path}", "mountPoint": folder})
    return found


def _how(job: Job, target: VertexTarget, choices: Sequence[VertexChoice], disks: bool) -> How:
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


def _scheduling_findings(job: Job, target: VertexTarget, asked: How, choices: Sequence[VertexChoice]) -> list[Finding]:
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


def _scheduling(job: Job, asked: How, several: bool) -> dict[str, Any]:
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


def _affinity(asked: How) -> dict[str, Any]:
    """Of a MachineSpec."""
    if asked.reservation is None:
        return {}
    made = {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": KEY, "values": [asked.reservation]}
    return {"reservationAffinity": made}
