"""Quota check for the VMs of a request that must exist at once: whether the project's quotas could ever hold them."""

from accel.catalog import UnknownName, machine
from accel.clouds.timeouts import Timing

from ..base import QuotaAnswer, Request
from ..vm.quota import check, gpus
from .lookup import BatchJob, first

PREEMPTIBLE = ("SPOT", "PREEMPTIBLE", "FLEX_START")
"""Provisioning models that count towards the preemptible quotas. Source of the last:
https://docs.cloud.google.com/managed-spark/docs/guides/dws-serverless"""


def quota(request: Request, timing: Timing | None = None) -> QuotaAnswer:
    """Return an empty answer for machines without GPUs, and for those of an instance template or a reservation."""
    _, project, _, region = str(request.body["parent"]).split("/")
    job = BatchJob(request.body["job"])
    kind = job.policy.get("machineType")
    if not kind or job.policy.get("reservation"):
        return QuotaAnswer()
    attached = first(job.policy.get("accelerators"))
    count = int(attached.get("count") or _built_in(str(kind)))
    spot = job.policy.get("provisioningModel") in PREEMPTIBLE
    # Only the zone's region counts.
    zone = f"{region}-a"
    wanted = gpus([zone], str(kind), attached.get("type"), count, _vms(job), spot=spot)
    return check(project, wanted, timing)


def _built_in(kind: str) -> int:
    try:
        return machine("gcp", kind).whole_accelerators
    except UnknownName:
        return 0


def _vms(job: BatchJob) -> int:
    """Return how many must exist at once: all nodes, or one for an array, whose tasks can wait for each other."""
    if job.several != "node":
        return 1
    return -(-job.count // int(job.group.get("taskCountPerNode") or 1))
