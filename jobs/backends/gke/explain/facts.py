"""What is known of a job, read when it is first asked for, and what the cluster's nodes say of a pod that waits.

What may not be read makes no cause true.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

from accel.catalog import nearest
from accel.clouds.google.rest import entries
from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.responses import part, parts
from accel.contract.gke import ASKED_AGAIN
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound

from ...base import Explanation, JobRef, Status
from .. import labels, lookup
from ..labels import Scope
from ..lookup import GkeJob
from ..machines import GPU_LABEL, GPUS
from ..status import status_of

TAIL_LINES = 100
EVENTS_SEEN = 200

Result = TypeVar("Result")


class Facts:
    """One job, now."""

    def __init__(self, api: Api, scope: Scope, ref: JobRef, job: GkeJob) -> None:
        self.api, self.scope, self.ref, self.job = api, scope, ref, job
        self.status: Status = status_of(ref, job)
        self.unread: list[str] = []

    @cached_property
    def now(self) -> datetime:
        """One moment for all causes."""
        return datetime.now(UTC)

    @property
    def age_s(self) -> float:
        """Since the job was made."""
        created = self.status.created
        return (self.now - created).total_seconds() if created else 0.0

    @cached_property
    def pod(self) -> dict[str, Any]:
        """The pod that tells why the job is as it is: the last that failed, or the first that waits."""
        phases = ("Failed",) if self.status.phase == "FAILED" else ("Pending",)
        fitting = [pod for pod in self.job.pods if part(pod, "status").get("phase") in phases]
        if not fitting:
            return {}
        return fitting[-1] if phases == ("Failed",) else fitting[0]

    def texts(self, where: str) -> list[str]:
        """What is said there, the newest first."""
        return _SOURCES[where](self)

    def given_up_text(self) -> list[str]:
        """Why the wait for nodes was ended."""
        return [self.job.given_up] if self.job.given_up else []

    def asked_again(self) -> tuple[str, ...]:
        """How often nodes were asked for anew, and why the last time."""
        told = part(self.job.workload, "metadata", "annotations").get(ASKED_AGAIN)
        return (f"nodes were asked for anew, time {told}",) if told else ()

    def queue_text(self) -> list[str]:
        """Why Kueue has not reserved quota."""
        conditions = parts(part(self.job.workload, "status"), "conditions")
        return [
            str(each.get("message"))
            for each in conditions
            if each.get("type") == "QuotaReserved" and each.get("status") == "False"
        ]

    def checks_text(self) -> list[str]:
        """Of Kueue's admission checks that are not passed."""
        checks = parts(part(self.job.workload, "status"), "admissionChecks")
        return [f"{each.get('name')}: {each.get('message', '')}" for each in checks if each.get("state") != "Ready"]

    def scheduler_text(self) -> list[str]:
        """Why no node takes the pod."""
        told = parts(part(self.pod, "status"), "conditions")
        return [str(each.get("message")) for each in told if each.get("reason") == "Unschedulable"]

    def waiting_text(self) -> list[str]:
        """Why the container does not start."""
        waiting = part(lookup.state(self.pod), "waiting")
        if not waiting:
            return []
        # While it backs off, only the events still have the registry's words.
        earlier = [f"{waiting.get('reason')}: {text}" for text in self.messages("Failed") if "pull" in text]
        return [*earlier, f"{waiting.get('reason')}: {waiting.get('message', '')}"]

    def pod_text(self) -> list[str]:
        """How the pod ended, where the kubelet ended it."""
        told = part(self.pod, "status")
        return [f"{told.get('reason')}: {told.get('message', '')}"] if told.get("reason") else []

    def ended_text(self) -> list[str]:
        """How the container ended."""
        ended = part(lookup.state(self.pod), "terminated")
        return [f"{ended.get('reason')}: {ended.get('message', '')}"] if ended else []

    def refused_text(self) -> list[str]:
        """Why the job's pods are not made. The event is of the Job, which a JobSet names itself."""
        if self.job.pods:
            return []
        told = self._ask(
            "list events",
            lambda: self.api.first(self.scope.core("events"), EVENTS_SEEN, fieldSelector="reason=FailedCreate"),
        )
        own = [each for each in told or [] if str(part(each, "involvedObject").get("name")).startswith(self.ref.id)]
        return [str(each.get("message")) for each in sorted(own, key=_last_seen, reverse=True)]

    def messages(self, *reasons: str) -> list[str]:
        """The messages of events with one of the reasons."""
        return [str(each.get("message")) for each in self.events if each.get("reason") in reasons]

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Of the pod, the newest first. Kubernetes keeps them for an hour."""
        name = part(self.pod, "metadata").get("name")
        if not name:
            return []
        told = self._ask(
            "list events",
            lambda: self.api.first(self.scope.core("events"), EVENTS_SEEN, fieldSelector=f"involvedObject.name={name}"),
        )
        return sorted(told or [], key=_last_seen, reverse=True)

    @cached_property
    def nodes(self) -> list[dict[str, Any]] | None:
        """Of the cluster; None: they may not be read."""
        return self._ask("list nodes", lambda: list(self.api.items("/api/v1/nodes")))

    @cached_property
    def lines(self) -> tuple[str, ...] | None:
        """The end of the pod's log; None: it could not be read, or the pod is gone."""
        name = part(self.pod, "metadata").get("name")
        if not name:
            return None
        path = f"{self.scope.core('pods')}/{name}/log"
        told = self._ask(
            "get pods/log",
            lambda: tuple(self.api.lines(path, container=labels.CONTAINER, tailLines=TAIL_LINES)),
        )
        if told:
            return told
        # The kubelet has kept the end of the output in the pod's status.
        kept = part(lookup.state(self.pod), "terminated").get("message")
        return tuple(str(kept).splitlines()) if kept else told

    @property
    def gpus(self) -> int:
        """Of one pod."""
        return int(part(self.job.container, "resources", "limits").get(GPUS) or 0)

    def _ask(self, what: str, call: Callable[[], Result]) -> Result | None:
        try:
            return call()
        except NotFound:
            return None
        except (CloudRefused, CloudSilent) as error:
            self.unread.append(f"{what}: {error.message}")
            return None


_SOURCES: dict[str, Callable[[Facts], list[str]]] = {
    "given-up": Facts.given_up_text,
    "queue": Facts.queue_text,
    "check": Facts.checks_text,
    "scheduler": Facts.scheduler_text,
    "waiting": Facts.waiting_text,
    "refused": Facts.refused_text,
    "pod": Facts.pod_text,
    "ended": Facts.ended_text,
    "scaling": lambda facts: facts.messages("TriggeredScaleUp"),
    "failed-scale": lambda facts: facts.messages("FailedScaleUp"),
    "no-scale": lambda facts: facts.messages("NotTriggerScaleUp"),
    "mount": lambda facts: facts.messages("FailedMount", "FailedAttachVolume"),
}
"""Where words stand, and how they are found."""


def _last_seen(event: dict[str, Any]) -> str:
    series = part(event, "series").get("lastObservedTime")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or "")


DRIVER_S = 600
"""A driver is there within a few minutes of a node's start. P12: one that is not, will not come."""


def without_driver(facts: Facts) -> Explanation | None:
    """Nodes with the pod's kind of GPU are Ready for long, and offer none."""
    selector = part(facts.job.pod_spec, "nodeSelector")
    if not facts.gpus or not facts.texts("scheduler") or facts.nodes is None:
        return None
    kind = selector.get(GPU_LABEL)
    fitting = [node for node in facts.nodes if _label(node, GPU_LABEL) and kind in (None, _label(node, GPU_LABEL))]
    bare = [node for node in fitting if not _offers(node) and _ready_s(facts, node) > DRIVER_S]
    if not bare or any(_offers(node) for node in fitting):
        return None
    names = ", ".join(str(part(node, "metadata").get("name")) for node in bare[:3])
    driver = _label(bare[0], "cloud.google.com/gke-gpu-driver-version") or "no label gke-gpu-driver-version"
    return Explanation(
        "driver-not-ready",
        f"{len(bare)} nodes with {_label(bare[0], GPU_LABEL)} have been Ready for over ten minutes and offer no GPU",
        (f"{names}: {GPUS} allocatable 0; driver: {driver}", *facts.texts("scheduler")[:1]),
        "`kubectl -n kube-system get pods -o wide` shows the driver's installer on the node; a pool has one owner of "
        "its driver: GKE, the DaemonSet or the operator",
    )


def mislabelled(facts: Facts) -> Explanation | None:
    """No node, and no pool that the autoscaler knows, has a label that the pod asks for."""
    texts = [*facts.texts("scheduler"), *facts.texts("no-scale")]
    if not texts or not all("didn't match Pod's node affinity/selector" in text for text in texts):
        return None
    if facts.nodes is None or "no-scale" not in _told(facts):
        return None
    for name, wanted in _wanted(facts).items():
        known = sorted({value for node in facts.nodes if (value := _label(node, name))})
        if known and not set(wanted) & set(known):
            near = nearest(wanted[0], known) or known[:3]
            return Explanation(
                "no-such-node",
                f"no node has {name}={', '.join(wanted)}",
                (f"nodes have {', '.join(known[:6])}", *texts[:1]),
                f"nearest: {', '.join(near)}; the pool may have been replaced since: submit the job again",
            )
    return None


def _told(facts: Facts) -> tuple[str, ...]:
    return tuple(where for where in ("scaling", "no-scale", "failed-scale") if facts.texts(where))


def _wanted(facts: Facts) -> dict[str, list[str]]:
    """The labels that the pod asks for: of its selector, and of the first term of its affinity."""
    wanted = {name: [str(value)] for name, value in part(facts.job.pod_spec, "nodeSelector").items()}
    required = part(facts.job.pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for term in parts(required, "nodeSelectorTerms")[:1]:
        for each in parts(term, "matchExpressions"):
            if each.get("operator") == "In":
                wanted[str(each.get("key"))] = [str(value) for value in entries(each.get("values"))]
    return wanted


def _label(node: dict[str, Any], name: str) -> str:
    return str(part(node, "metadata", "labels").get(name) or "")


def _offers(node: dict[str, Any]) -> bool:
    return str(part(node, "status", "allocatable").get(GPUS) or "0") != "0"


def _ready_s(facts: Facts, node: dict[str, Any]) -> float:
    """For how long; 0 for a node that is not Ready."""
    ready = lookup.condition(node, "Ready")
    since = lookup.at((ready or {}).get("lastTransitionTime"))
    return (facts.now - since).total_seconds() if since else 0.0
