"""Cancelling: every pod ends, the queue's quota is given back, and the job stays to be seen.

running    the Job's deadline is set to a second: it ends as Failed, its pods get SIGTERM and their grace period
suspended  a deadline does not run; Kueue is told to leave the job alone (its Workload is made inactive, as
           `kueuectl stop workload` does), and without a queue it is suspended already

Both carry an annotation first, by which a job that never started counts as ended, and a job that is being started at
this moment has the deadline on it.
"""

from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.responses import part
from accel.contract.gke import ASKING_AGAIN
from accel.diagnostics.errors import NotFound

from ..base import JobRef
from . import labels, lookup
from .labels import Scope
from .lookup import GkeJob
from .status import status

DEADLINE_S = 1


def cancel(api: Api, scope: Scope, ref: JobRef, reason: str) -> None:
    """Asks the job to stop. Raises NotFound."""
    if status(api, scope, ref).phase.ended:
        return
    body = lookup.body(api, scope, ref.id)
    annotation = {"metadata": {"annotations": {labels.CANCELLED: reason or "cancelled"}}}
    job = GkeJob(body)
    if job.jobset:
        body = api.patch(f"{scope.jobsets}/{ref.id}", annotation)
        if not _end_children(api, scope, ref.id) and job.queue is None:
            body = api.patch(f"{scope.jobsets}/{ref.id}", {"spec": {"suspend": True}})
    else:
        deadline = {"spec": {"activeDeadlineSeconds": DEADLINE_S}}
        body = api.patch(f"{scope.jobs}/{ref.id}", {**annotation, **deadline})
    if GkeJob(body).queue and GkeJob(body).suspended:
        _deactivate(api, scope, body)


def _end_children(api: Api, scope: Scope, name: str) -> int:
    """The Jobs of a JobSet that run; its failure policy says that their deadline is its end."""
    ended = 0
    for child in api.items(scope.jobs, labelSelector=f"jobset.sigs.k8s.io/jobset-name={name}"):
        if part(child, "spec").get("suspend") is not True:
            path = f"{scope.jobs}/{part(child, 'metadata').get('name')}"
            try:
                api.patch(path, {"spec": {"activeDeadlineSeconds": DEADLINE_S}})
                ended += 1
            except NotFound:
                continue  # it was replaced in between; a new one is caught by cancelling again
    return ended


def _deactivate(api: Api, scope: Scope, body: dict[str, Any]) -> None:
    workload = lookup.workload(api, scope, str(part(body, "metadata").get("uid")))
    if workload is None:
        return
    again = ASKING_AGAIN in part(workload, "metadata", "labels")
    if again or part(workload, "spec").get("active") is not False:
        name = part(workload, "metadata").get("name")
        # With the label, whoever asks for its nodes anew would make it active again.
        unmarked = {"metadata": {"labels": {ASKING_AGAIN: None}}} if again else {}
        api.patch(f"{scope.workloads}/{name}", {"spec": {"active": False}, **unmarked})
