"""Facts that a cluster knows about a job, each read when first needed: its Workload, pods, events, nodes and log."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, ClassVar

from accel.clouds.kubernetes.client import Api
from accel.contract.gke import ASKED_AGAIN
from accel.json_values import entries, object_at, objects_at

from ..base import Explanation, JobRef, Status
from ..diagnosis.engine import LazyFacts
from . import labels, lookup
from .labels import Scope
from .lookup import GkeJob
from .machines import CHIPS, GPUS
from .status import status_of

TAIL_LINES = 100
EVENTS_SEEN = 200
_EVENTS = {
    "scaling": ("TriggeredScaleUp",),
    "failed-scale": ("FailedScaleUp",),
    "no-scale": ("NotTriggerScaleUp",),
    "sandbox": ("FailedCreatePodSandBox",),
}
"""Reasons of the pod's events by kind of text."""
_NOT_MOUNTED = ("FailedMount", "FailedAttachVolume")
_MOUNTED = ("Pulling", "Pulled", "Created", "Started")
"""Reasons of events that come once all volumes are mounted."""
_PASSING = re.compile(r"failed to sync (secret|configmap) cache|not registered")
"""Words of a kubelet that does not have the pod's secrets yet, and tries again. Source:
https://github.com/kubebb/core/pull/130"""


class GkeFacts(LazyFacts):
    """Facts about one job, as of now."""

    PLATFORM = "gke"
    MISSING_IS_UNREAD = False
    NEXT_STEPS: ClassVar = {
        "container-gpu": "use a pool with a newer driver, or an image for an older CUDA; a pool has one owner of its "
        "driver: GKE, the DaemonSet or the operator",
        "disk-full": "write to a bucket or a volume, give disk_gib, or use a pool with larger disks",
        "gpu-not-visible": "the image's CUDA must not be newer than the driver of the pool's nodes, and "
        "LD_LIBRARY_PATH must keep /usr/local/nvidia/lib64, where GKE puts the driver",
        "image-forbidden": "the nodes' service account needs roles/artifactregistry.reader on the repository; a name "
        "that is wrong may be answered the same",
        "mount": "of a bucket: the service account needs roles/storage.objectUser; of a claim: is it in use elsewhere?",
        "secret-unreadable": "make it in the job's namespace: "
        "`kubectl create secret generic NAME --from-literal=KEY=...`",
        "out-of-memory": "raise memory_mib; shared memory (/dev/shm) counts too",
    }

    def __init__(self, api: Api, scope: Scope, ref: JobRef, job: GkeJob) -> None:
        super().__init__()
        self.api, self.scope, self.ref, self.job = api, scope, ref, job
        self.status: Status = status_of(ref, job)

    def texts(self, kind: str) -> Sequence[str]:
        if kind in _EVENTS:
            return self._messages(*_EVENTS[kind])
        match kind:
            case "given-up":
                return [self.job.given_up] if self.job.given_up else []
            case "queue":  # why Kueue has not reserved quota
                reserved = [each for each in self.workload("conditions") if each.get("type") == "QuotaReserved"]
                return [str(each.get("message")) for each in reserved if each.get("status") == "False"]
            case "check":  # Kueue's admission checks that have not passed
                checks = [each for each in self.workload("admissionChecks") if each.get("state") != "Ready"]
                return [f"{each.get('name')}: {each.get('message', '')}" for each in checks]
            case "scheduler":  # why no node takes the pod
                conditions = objects_at(object_at(self.pod, "status"), "conditions")
                return [str(each.get("message")) for each in conditions if each.get("reason") == "Unschedulable"]
            case "mount":  # why a volume is not mounted, unless it has been since
                since = takewhile(lambda each: each.get("reason") not in _MOUNTED, self.events)
                told = [str(each.get("message")) for each in since if each.get("reason") in _NOT_MOUNTED]
                return [text for text in told if not _PASSING.search(text)]
            case "refused":  # why the job's pods are not created; a JobSet gives the event's Job a name of its own
                return [] if self.job.pods else self._refusals()
            case "waiting":  # why the container does not start
                waiting = object_at(lookup.state(self.pod), "waiting")
                # During back-off, only the events still have the registry's words.
                earlier = [text for text in self._messages("Failed") if "pull" in text] if waiting else []
                texts = [*earlier, str(waiting.get("message", ""))]
                return [f"{waiting.get('reason')}: {text}" for text in texts] if waiting else []
            case "pod":  # how the pod ended, where the kubelet ended it or did not take it
                disrupted = lookup.condition(self.pod, "DisruptionTarget") or {}
                return [*_reason(object_at(self.pod, "status")), *_reason(disrupted)]
            case "container":  # how the container ended
                return _reason(object_at(lookup.state(self.pod), "terminated"))
            case _:
                return super().texts(kind)

    def context(self, kind: str) -> Sequence[str]:
        """Return how often nodes were requested anew, or to which of several pods the texts belong."""
        if kind == "check":
            count = object_at(self.job.workload, "metadata", "annotations").get(ASKED_AGAIN)
            return (f"nodes were asked for anew, time {count}",) if count else ()
        return () if kind in ("queue", "given-up") else self.place

    def unknown(self) -> Explanation:
        status = self.status
        state = f"the job is {status.phase} ({status.native}), {status.reason or 'without a reason'}"
        events = (f"{each.get('reason')}: {each.get('message')}" for each in self.events[:5])
        pods = f"`kubectl -n {self.scope.namespace} describe pods -l {labels.OBJECT}={self.ref.id}`"
        return self.explanation("unknown", evidence=(state, *events), next_step=f"{pods} shows all that is known")

    @cached_property
    def pod(self) -> dict[str, Any]:
        """Pod that explains the job's state: the last one that failed, or the first one that waits."""
        phase = "Failed" if self.status.phase == "FAILED" else "Pending"
        fitting = [pod for pod in self.job.pods if object_at(pod, "status").get("phase") == phase]
        if not fitting:
            return {}
        return fitting[-1] if phase == "Failed" else fitting[0]

    @property
    def place(self) -> tuple[str, ...]:
        several = self.job.several
        return (f"{several} {lookup.index(self.pod)} of {self.job.count}",) if several and self.pod else ()

    def workload(self, member: str) -> list[dict[str, Any]]:
        """Return one list from the status of the job's Workload in Kueue."""
        return objects_at(object_at(self.job.workload, "status"), member)

    def _refusals(self) -> list[str]:
        path = self.scope.core("events")
        read = self.read("list events", lambda: self.api.first(path, EVENTS_SEEN, fieldSelector="reason=FailedCreate"))
        own = [
            each for each in read or [] if str(object_at(each, "involvedObject").get("name")).startswith(self.ref.id)
        ]
        return [str(each.get("message")) for each in sorted(own, key=_last_seen, reverse=True)]

    def _messages(self, *reasons: str) -> list[str]:
        return [str(each.get("message")) for each in self.events if each.get("reason") in reasons]

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Events of the pod, newest first. Kubernetes keeps them for an hour."""
        name = object_at(self.pod, "metadata").get("name")
        if not name:
            return []
        path, selector = self.scope.core("events"), f"involvedObject.name={name}"
        read = self.read("list events", lambda: self.api.first(path, EVENTS_SEEN, fieldSelector=selector))
        return sorted(read or [], key=_last_seen, reverse=True)

    @cached_property
    def nodes(self) -> list[dict[str, Any]] | None:
        """None if they may not be read."""
        return self.read("list nodes", lambda: list(self.api.items("/api/v1/nodes")))

    @property
    def silent_nodes(self) -> list[str]:
        """Names of nodes that do not report, and whose pods still count as running. Source:
        https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase"""
        running = [pod for pod in self.job.pods if object_at(pod, "status").get("phase") == "Running"]
        theirs = {str(object_at(pod, "spec").get("nodeName") or "") for pod in running} - {""}
        silent = [node for node in (self.nodes if theirs else None) or [] if not lookup.condition(node, "Ready")]
        return sorted(theirs & {str(object_at(node, "metadata").get("name")) for node in silent})

    @property
    def wanted_labels(self) -> dict[str, list[str]]:
        """Labels of nodes that the pods ask for, each with the values that will do."""
        wanted = {name: [str(value)] for name, value in object_at(self.job.pod_spec, "nodeSelector").items()}
        required = object_at(
            self.job.pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
        )
        for term in objects_at(required, "nodeSelectorTerms")[:1]:
            for each in objects_at(term, "matchExpressions"):
                if each.get("operator") == "In":
                    wanted[str(each.get("key"))] = [str(value) for value in entries(each.get("values"))]
        return wanted

    @cached_property
    def lines(self) -> tuple[str, ...] | None:
        """End of the pod's log. None if it could not be read, or the pod is gone."""
        name = object_at(self.pod, "metadata").get("name")
        if not name:
            return None
        path = f"{self.scope.core('pods')}/{name}/log"
        lines = self.read(
            "get pods/log",
            lambda: tuple(self.api.lines(path, container=labels.CONTAINER, tailLines=TAIL_LINES)),
        )
        if lines:
            return lines
        # The kubelet has kept the end of the output in the pod's status.
        kept = object_at(lookup.state(self.pod), "terminated").get("message")
        return tuple(str(kept).splitlines()) if kept else lines

    @property
    def gpus(self) -> int:
        """GPUs of one pod."""
        return int(object_at(self.job.container, "resources", "limits").get(GPUS) or 0)

    @property
    def chips(self) -> int:
        """TPU chips of one pod."""
        return int(object_at(self.job.container, "resources", "limits").get(CHIPS) or 0)

    @property
    def memory_mib(self) -> int | None:
        text = str(object_at(self.job.container, "resources", "limits").get("memory") or "").removesuffix("Mi")
        return int(text) if text.isdigit() else None


def _reason(state: Mapping[str, Any]) -> list[str]:
    return [f"{state.get('reason')}: {state.get('message', '')}"] if state.get("reason") else []


def _last_seen(event: dict[str, Any]) -> str:
    series = object_at(event, "series").get("lastObservedTime")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or "")
