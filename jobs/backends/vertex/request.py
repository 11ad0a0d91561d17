"""A job as a custom job of Vertex AI, with how its machines are had and when it ends. Pure.

The body is {"parent": ..., "customJob": CustomJob}. Source:
https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs
"""

from datetime import date
from typing import Any

from accel.contract import buckets
from accel.contract.google_jobs import VertexTarget
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.errors import BadInputs
from accel.rules.gcp import labels as gcp_labels
from accel.rules.vertex import jobs

from ...model.job import Job
from ..base import Request
from ..checks import run_checks
from . import capacity, checks, labels, pools
from .containers import Node, task, translate
from .labels import KIND, Scope
from .nodes import PORT
from .pools import Draft, Plan


def render(
    job: Job, name: str, key: str, target_name: str, target: VertexTarget, *, today: date | None = None
) -> Request:
    """Return the request for a job; `today` decides whether an image is still to be had.

    Raise BadInputs with every field that cannot be honoured.
    """
    diagnostics = Diagnostics()
    draft = Draft(job, target, today or date.today())
    plan = pools.plan(draft, diagnostics)
    run_checks(checks.JOB, checks.PLANNED, draft, plan, diagnostics)
    if plan is None or diagnostics.errors:
        raise BadInputs(list(dict.fromkeys(diagnostics.errors)))
    custom_job = {
        "displayName": name,
        "labels": {**target.labels, **gcp_labels.translated(job.labels)},
        "jobSpec": _spec(draft, plan, name),
    }
    body = {
        "parent": Scope(target.project, target.region).parent,
        "customJob": labels.labelled(custom_job, job.name, key, target_name),
    }
    return Request(KIND, target_name, name, key, body, tuple(dict.fromkeys(diagnostics.warnings)))


def _spec(draft: Draft, plan: Plan, name: str) -> dict[str, Any]:
    """Return the CustomJobSpec."""
    block, target = draft.block, draft.target
    spec: dict[str, Any] = {
        # A place that no pool has is an empty one: what a pool is for is told by its place.
        "workerPoolSpecs": [
            _pool(draft, plan, place, name) if place in plan.pools else {} for place in range(max(plan.pools) + 1)
        ],
        "scheduling": capacity.scheduling(draft.job, plan.capacity, several=1 in plan.pools),
        "serviceAccount": target.service_account,
        "baseOutputDirectory": {"outputUriPrefix": block.output or f"gs://{target.bucket}/{buckets.JOBS}/{name}"},
    }
    if plan.capacity.persistent:
        spec["persistentResourceId"] = plan.capacity.persistent
    if target.network_attachment:
        spec["pscInterfaceConfig"] = {"networkAttachment": target.network_attachment}
    elif target.network:
        spec["network"] = target.network
    if board := block.tensorboard or target.tensorboard:
        spec["tensorboard"] = board
    if block.web_access:
        spec["enableWebAccess"] = True
    if block.dashboard_access:
        spec["enableDashboardAccess"] = True
    return spec


def _pool(draft: Draft, plan: Plan, place: int, name: str) -> dict[str, Any]:
    """Return a WorkerPoolSpec."""
    job, pool = draft.job, plan.pools[place]
    machine = pool.choice.spec()
    if pool.choice == plan.first.choice:
        machine |= capacity.affinity(plan.capacity)  # other machines are not of the reservation
    spec: dict[str, Any] = {"machineSpec": machine, "replicaCount": str(pool.replicas)}
    disk = {"bootDiskType": pool.disk_type, "bootDiskSizeGb": pool.disk_gb}
    if disk := {field: value for field, value in disk.items() if value}:
        spec["diskSpec"] = disk
    if shares := _shares(job):
        spec["nfsMounts"] = shares
    node = None
    if place < 2 and 1 in plan.pools:
        count = plan.pools[0].replicas + plan.pools[1].replicas
        node = Node(count, pool.choice.gpus, job.env.get("MASTER_PORT", str(PORT)))
    return spec | task(translate(pool.program, draft.today), job, name, node)


def _shares(job: Job) -> list[dict[str, str]]:
    """Return the NfsMounts. A bucket is there without one."""
    shares: list[dict[str, str]] = []
    for mount in job.mounts:
        if mount.source.startswith("nfs://"):
            server, _, path = mount.source.removeprefix("nfs://").partition("/")
            folder = mount.path.removeprefix(jobs.NFS_ROOT).rstrip("/")
            shares.append({"server": server, "path": f"/{path}", "mountPoint": folder})
    return shares
