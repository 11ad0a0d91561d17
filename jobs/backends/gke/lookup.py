"""Lookup of a job in a cluster: its Job or JobSet, with its pods and its Workload in Kueue."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.contract.gke import GIVEN_UP
from accel.diagnostics.errors import CloudRefused, NotFound
from accel.json_values import object_at, objects_at

from ..base import JobRef
from . import labels
from .labels import Scope
from .retries import lost_exit_codes

POD_SAMPLE = 500
"""Pods of one job that are read. An array's state counts all of its pods."""


@dataclass(frozen=True)
class GkeJob:
    """Job with the pods that were read, oldest first, and its Workload: None without a queue, or if it was not read."""

    body: dict[str, Any]
    pods: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    workload: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return str(object_at(self.body, "metadata").get("name", ""))

    @property
    def jobset(self) -> bool:
        return self.body.get("kind") == "JobSet"

    @property
    def annotations(self) -> dict[str, Any]:
        return object_at(self.body, "metadata", "annotations")

    @property
    def suspended(self) -> bool:
        return object_at(self.body, "spec").get("suspend") is True

    @property
    def given_up(self) -> str | None:
        """Reason why the wait for its nodes was ended, if it was and nobody has restarted it."""
        if object_at(self.workload, "spec").get("active") is not False:
            return None
        return object_at(self.workload, "metadata", "annotations").get(GIVEN_UP)

    @property
    def queue(self) -> str | None:
        return object_at(self.body, "metadata", "labels").get(labels.QUEUE)

    @property
    def job_spec(self) -> dict[str, Any]:
        spec = object_at(self.body, "spec")
        return object_at(objects_at(spec, "replicatedJobs")[0], "template", "spec") if self.jobset else spec

    @property
    def pod_spec(self) -> dict[str, Any]:
        return object_at(self.job_spec, "template", "spec")

    @property
    def container(self) -> dict[str, Any]:
        return main(objects_at(self.pod_spec, "containers"))

    @property
    def several(self) -> str | None:
        """`node` or `task` if the job has several, else None."""
        if self.job_spec.get("completionMode") != "Indexed":
            return None
        return "node" if self.jobset or self.pod_spec.get("subdomain") else "task"

    @property
    def count(self) -> int:
        return int(self.job_spec.get("completions") or 1)


def body(api: Api, scope: Scope, name: str) -> dict[str, Any]:
    """Raise NotFound if there is neither a Job nor a JobSet."""
    try:
        return api.get(f"{scope.jobs}/{name}")
    except NotFound:
        try:
            return api.get(f"{scope.jobsets}/{name}")
        except NotFound:
            raise NotFound(
                f"{scope.ref(name)}: the cluster knows no such job",
                "an ended job is deleted after gke.keep_s, seven days without it",
            ) from None


def look(api: Api, scope: Scope, ref: JobRef) -> GkeJob:
    """Read the Workload only while the job is queued. Raise NotFound."""
    job = body(api, scope, ref.id)
    found = GkeJob(job, pods(api, scope, ref.id))
    if not (found.queue and found.suspended):
        return found
    return GkeJob(job, found.pods, workload(api, scope, str(object_at(job, "metadata").get("uid"))))


def pods(api: Api, scope: Scope, name: str) -> list[dict[str, Any]]:
    found = api.first(scope.core("pods"), POD_SAMPLE, labelSelector=f"{labels.OBJECT}={name}")
    return sorted(found, key=lambda pod: (str(object_at(pod, "metadata").get("creationTimestamp")), index(pod)))


def workload(api: Api, scope: Scope, uid: str) -> dict[str, Any] | None:
    """Return None if there is none yet, or it may not be read."""
    try:
        found = api.first(scope.workloads, 10, labelSelector=f"kueue.x-k8s.io/job-uid={uid}")
    except (NotFound, CloudRefused):
        return None
    return found[-1] if found else None


def index(pod: Mapping[str, Any]) -> int:
    metadata = object_at(pod, "metadata")
    told = object_at(metadata, "annotations").get(labels.INDEX) or object_at(metadata, "labels").get(labels.INDEX)
    return int(str(told)) if str(told).isdigit() else 0


def main(containers: list[dict[str, Any]]) -> dict[str, Any]:
    """Select the job's own container, or its status, among those of a pod."""
    return next((each for each in containers if each.get("name") == labels.CONTAINER), dict[str, Any]())


def state(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of the job's container: `waiting`, `running` or `terminated`, with details."""
    return object_at(main(objects_at(object_at(pod, "status"), "containerStatuses")), "state")


def condition(found: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    """Return None unless the condition is true."""
    conditions = objects_at(object_at(found, "status"), "conditions")
    return next((each for each in conditions if each.get("type") == kind and each.get("status") == "True"), None)


def is_lost(pod: Mapping[str, Any]) -> bool:
    """Return whether the cloud or the cluster took the pod away, or its command reported a loss without a cancellation.
    Source: https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions"""
    if object_at(pod, "status").get("phase") != "Failed":
        return False
    if condition(pod, "DisruptionTarget") is not None:
        return True
    told = lost_exit_codes("activeDeadlineSeconds" in object_at(pod, "spec"))
    return object_at(state(pod), "terminated").get("exitCode") in told and "deletionTimestamp" not in object_at(
        pod, "metadata"
    )


def at(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00")) if text else None
    except ValueError:
        return None
