"""A job as a custom job of Vertex AI. Pure.

The body is {"parent": ..., "customJob": CustomJob}. Source:
https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs
"""

from collections.abc import Mapping
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

from ...model import sweep_tasks
from ...model.blocks_google import Vertex
from ...model.job import Job, prefers, unused_blocks
from ..base import Request
from . import labels, pools, scheduling
from .containers import Node, task
from .labels import KIND, Scope
from .nodes import PORT
from .pools import Planned

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
    how = scheduling.how(job, target, choices, disks)
    if found:
        diagnostics.add(scheduling.findings(job, target, how, choices))
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


def _spec(
    job: Job, name: str, target: VertexTarget, found: Mapping[int, Planned], how: scheduling.How
) -> dict[str, Any]:
    """CustomJobSpec."""
    block = job.vertex or Vertex()
    several = 1 in found
    made: dict[str, Any] = {
        # A place that no pool has is an empty one: what a pool is for is told by its place.
        "workerPoolSpecs": [
            _pool(job, name, place, found, how) if place in found else {} for place in range(max(found) + 1)
        ],
        "scheduling": scheduling.scheduling(job, how, several),
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


def _pool(job: Job, name: str, place: int, found: Mapping[int, Planned], how: scheduling.How) -> dict[str, Any]:
    """WorkerPoolSpec."""
    planned = found[place]
    machine = planned.choice.spec()
    if planned.choice == found[0].choice:
        machine |= scheduling.affinity(how)  # other machines are not of the reservation
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
