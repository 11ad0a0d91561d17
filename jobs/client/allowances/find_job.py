"""Lookup of a job by its submission key, where nobody recorded its reference, and how long it can be found."""

from typing import Protocol

from accel.clouds.aws.clients import Clients, Timing
from accel.clouds.google.api import Google
from accel.contract.gke import GkeTarget
from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.google_vms import GceTarget, TpuVmTarget
from accel.contract.targets import AnyTarget, AwsBatchTarget, LocalTarget
from accel.diagnostics.errors import NotFound

from ...backends.base import JobRef
from ...backends.claims.dynamodb import TableClaims
from ...backends.registry import of_target, platform_module
from ...model.blocks import Gke
from ...model.job import Job
from .reservation import Hold


class Finding(Protocol):
    """Lookup of a reservation's job. Raises CloudSilent, NoCredentials or CloudRefused for an unreadable platform."""

    def __call__(self, hold: Hold, target: AnyTarget) -> JobRef | None: ...


_DAY_S = 86_400
_KNOWN_S = {"aws-batch": 6 * _DAY_S, "google-batch": 60 * _DAY_S, "tpu-vm": 60 * _DAY_S, "gce": 60 * _DAY_S}
"""Seconds for which a platform keeps a job, by kind. AWS Batch lists an ended job for at least seven days, Google Batch
for 60, and records of jobs on VMs are kept for 90 where the stack sets nothing else. Sources:
https://docs.aws.amazon.com/batch/latest/userguide/job_states.html, jobs.backends.google_batch.lookup.KEPT"""


def retention_s(job: Job, kind: str) -> int | None:
    """Return the seconds for which a platform surely knows a job made now; None: until somebody deletes it."""
    return (job.gke or Gke()).keep_s if kind == "gke" else _KNOWN_S.get(kind)


def find_job(hold: Hold, target: AnyTarget) -> JobRef | None:
    match target:
        case AwsBatchTarget():
            return _aws_batch(hold, target)
        case VertexTarget():
            return _vertex(hold, target)
        case GoogleBatchTarget():
            scope = platform_module(target.kind, "labels").Scope(target.project, target.region)
            return _there(hold, target, scope.ref(hold.name))
        case GkeTarget():
            place = (target.project, target.location, target.cluster, target.namespace)
            scope = platform_module(target.kind, "labels").Scope(*place)
            return _there(hold, target, scope.ref(hold.name))
        case TpuVmTarget() | GceTarget():
            return _there(hold, target, JobRef(target.kind, target.bucket, hold.name))
        case LocalTarget():
            return _there(hold, target, JobRef(target.kind, "", hold.name))


def _there(hold: Hold, target: AnyTarget, ref: JobRef) -> JobRef | None:
    try:
        of_target(hold.target, target).status(ref)
    except NotFound:
        return None
    return ref


def _aws_batch(hold: Hold, target: AwsBatchTarget) -> JobRef | None:
    """Find the job by its claim, which is kept longer than AWS Batch keeps jobs; without one, by name and key."""
    clients = Clients(target.region, Timing())
    claim = TableClaims(clients, target.claim_table).read(hold.key) if target.claim_table else None
    if claim and claim.job_id:
        return JobRef(target.kind, target.region, claim.job_id)
    found = platform_module(target.kind, "submit").find_jobs(clients.batch, target.queue_arn, hold.name, hold.key)
    return JobRef(target.kind, target.region, min(found).id) if found else None


def _vertex(hold: Hold, target: VertexTarget) -> JobRef | None:
    labels = platform_module(target.kind, "labels")
    scope, label = labels.Scope(target.project, target.region), hold.key[: labels.LABEL_MAX]
    jobs = platform_module(target.kind, "lookup").query_jobs(Google(), scope, f'labels.{labels.KEY}="{label}"')
    found = [(job.created_ms, job.number) for job in jobs if job.labels.get(labels.KEY) == label]
    return scope.ref(min(found)[1]) if found else None
