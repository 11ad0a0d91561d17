"""Diagnosis of GKE jobs from what Kueue, the autoscaler, the scheduler and the kubelet say. Reads only."""

import re
from dataclasses import replace
from typing import Any

from accel.catalog import nearest
from accel.clouds.kubernetes.client import Api
from accel.diagnostics.errors import NotFound
from accel.json_values import object_at

from ..base import Explanation, JobRef, Phase
from ..gke import labels, lookup
from ..gke.facts import GkeFacts
from ..gke.labels import Scope
from ..gke.machines import GPU_LABEL, GPUS
from ..gke.status import pending
from . import outcome, words
from .cause import RETRY
from .engine import Rule, diagnose, judge, match, of_kind, row, within

NEW_S = 60
"""Age until which silence is no sign."""
DRIVER_S = 600
"""Time after which a missing driver will not come (P12). A driver is there within a few minutes of a node's start."""

_TARGET = "`accel-jobs offers` shows which targets can run it"
_LATER = "wait for the autoscaler, which looks every few seconds; `accel-jobs offers` shows other targets"
_PULL_REASONS = (
    r"ErrImagePull|ImagePullBackOff|ErrImageNeverPull|InvalidImageName|ImageInspectError|RegistryUnavailable"
    r"|SignatureValidationFailed"
)
_NOT_MADE = r"^(CreateContainer(Config)?Error|RunContainerError|StartError|ContainerCannotRun): "


def explain(api: Api, scope: Scope, ref: JobRef) -> Explanation:
    try:
        job = lookup.look(api, scope, ref)
    except NotFound as missing:
        reason = f"namespace {scope.namespace} of cluster {scope.cluster} has no job {ref.id}"
        step = "check the reference; a job is deleted gke.keep_s after its end, seven days without it"
        return GkeFacts.explanation("unknown-job", reason, (missing.message,), step)
    facts = GkeFacts(api, scope, ref, job)
    return diagnose(facts, RULES[facts.status.phase])


def _in_queue(facts: GkeFacts) -> Explanation | None:
    job = facts.job
    if job.queue is None:
        return None
    if job.workload is None:
        if facts.age_s(facts.status.created) < NEW_S:
            return facts.explanation("new")
        step = "is Kueue running? `kubectl get pods -n kueue-system`; you need a role that lets you list workloads"
        return facts.explanation("queue-silent", f"nothing is known of the job in queue {job.queue}", (), step)
    conditions = (f"{each.get('type')}: {each.get('message')}" for each in facts.workload("conditions"))
    return facts.explanation("behind-others", f"the job waits for its turn in queue {job.queue}", conditions, "wait")


def _scaling(facts: GkeFacts) -> Explanation | None:
    """Judge by the newest word of the autoscaler: it may have given up since an earlier one."""
    newest = next((each for each in facts.events if each.get("reason") in _SCALING), dict[str, Any]())
    if newest.get("reason") != "TriggeredScaleUp":
        return None
    return facts.explanation("machine-starting", "a node is on its way", (str(newest.get("message")),))


_SCALING = ("TriggeredScaleUp", "NotTriggerScaleUp", "FailedScaleUp")


def _taint(facts: GkeFacts) -> Explanation | None:
    """Tell taints of a pool from those by which Kubernetes keeps pods off a node for a time."""
    text = next((text for text in facts.texts("scheduler") if "taint" in text), None)
    if text is None or _SHORT.search(text):
        return None
    names = _TAINT.findall(text)
    if names and all(_OWN_TAINT.match(name) for name in names):
        if not any(_NOT_READY.search(name) for name in names):
            return None
        return facts.explanation("machine-starting", "a node is there, and is not ready yet", (text,))
    step = "submit it again: tolerations are those of the target's pools; or use a target whose pools have it"
    return facts.explanation("taint", "nodes have a taint that the job does not tolerate", (text,), step)


_SHORT = re.compile(r"Insufficient|Too many pods|didn't have free ports")
_TAINT = re.compile(r"taint \{([^:}]+)")
# https://kubernetes.io/docs/reference/labels-annotations-taints/; the autoscaler's are of nodes that it removes.
_OWN_TAINT = re.compile(r"node(\.cloudprovider)?\.kubernetes\.io/|ToBeDeleted|DeletionCandidate")
_NOT_READY = re.compile(r"/(not-ready|uninitialized|network-unavailable)$")


def _insufficient(facts: GkeFacts) -> Explanation | None:
    text = next(iter(facts.texts("scheduler")), None)
    if text is None:
        return None
    evidence = (text, *facts.texts("no-scale")[:1])
    if not _SHORT.search(text):
        reason = "no node that there is fits, and none is on its way"
        return facts.explanation("no-such-node", reason, evidence, _LATER)
    reason = "what the nodes have is in use, and no other node is on its way"
    return facts.explanation("insufficient", reason, evidence, _LATER)


def _starting(facts: GkeFacts) -> Explanation | None:
    if facts.age_s(facts.status.created) < NEW_S and not facts.pod:
        return facts.explanation("new")
    if node := object_at(facts.pod, "spec").get("nodeName"):
        reason = "a node has it; the image is pulled and the container made"
        return facts.explanation("starting", reason, (f"node {node}", pending(facts.pod) or ""), "wait")
    return None


def _stopped(facts: GkeFacts) -> Explanation | None:
    reason = facts.job.annotations.get(labels.CANCELLED)
    return None if reason is None else facts.explanation("stopped", evidence=(f"reason: {reason}",))


def _preempted(facts: GkeFacts) -> Explanation | None:
    if not lookup.is_lost(facts.pod):
        return None
    condition = lookup.condition(facts.pod, "DisruptionTarget") or {}
    lost = f"{facts.status.lost} attempts were lost"
    evidence = (f"{condition.get('reason')}: {condition.get('message', '')}", lost)
    reason, step = _TAKEN.get(str(condition.get("reason")), ("its node was preempted too often", _STAY))
    return facts.explanation("preempted", reason, evidence, f"{_AGAIN}; {step}")


_AGAIN, _STAY = "leave lost_retries out, so that what is lost is run again", "`spot: false` asks for nodes that stay"
_TAKEN = {
    "PreemptionByScheduler": ("a pod of a higher priority took its place", "a higher gke.priority keeps it"),
    "EvictionByEvictionAPI": ("it was put off its node, which is drained or replaced", "save and resume"),
}
"""Reason and next step by the reason of a pod's condition, where it is not the loss of a node:
https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions"""


def _program(facts: GkeFacts) -> Explanation | None:
    if facts.chips and (of_tpu := match(facts, words.TPU, outcome.region(facts.lines or ()), facts.place)):
        return of_tpu
    ended = outcome.FailedAttempt(facts.status.exit_code, facts.lines, facts.gpus, memory_mib=facts.memory_mib)
    return outcome.program_failure(facts, ended, facts.place)


def _well(facts: GkeFacts) -> Explanation:
    return facts.explanation("succeeded" if facts.status.phase is Phase.SUCCEEDED else "running")


def _silent_node(facts: GkeFacts) -> Explanation | None:
    silent = facts.silent_nodes
    if not silent:
        return None
    return facts.explanation(
        "vm-silent",
        f"node {silent[0]} is not ready, so nothing is known of the pod on it since",
        (f"nodes that are not ready: {', '.join(silent[:3])}",),
        "wait: after five minutes Kubernetes puts its pods out, and GKE repairs a node that is not ready for ten; "
        f"`kubectl describe node {silent[0]}` shows what is known",
    )


def _some_wait(facts: GkeFacts) -> Explanation | None:
    waiting, running = facts.status.tasks.get("Pending", 0), facts.status.tasks.get("Running", 0)
    if not waiting:
        return None
    counts = f"of {facts.job.count} tasks {_verb(running, 'run')}, {_verb(waiting, 'wait')}"
    if not facts.pod:
        most = facts.job.job_spec.get("parallelism")
        return facts.explanation("parallelism", evidence=(counts, f"parallelism is {most}"))
    hindrance = judge(facts, RULES[Phase.STARTING]) or facts.explanation("new", "they were made a moment ago")
    reason = f"the job runs, and some of its tasks wait: {hindrance.reason}"
    return replace(hindrance, reason=reason, evidence=(counts, *hindrance.evidence))


def _verb(count: int, verb: str) -> str:
    return f"{count} {verb}{'s' if count == 1 else ''}"


def _without_driver(facts: GkeFacts) -> Explanation | None:
    selector = object_at(facts.job.pod_spec, "nodeSelector")
    if not facts.gpus or not facts.texts("scheduler") or facts.nodes is None:
        return None
    kind = selector.get(GPU_LABEL)
    fitting = [node for node in facts.nodes if _label(node, GPU_LABEL) and kind in (None, _label(node, GPU_LABEL))]
    bare = [node for node in fitting if not _offers(node) and _ready_s(facts, node) > DRIVER_S]
    if not bare or any(_offers(node) for node in fitting):
        return None
    names = ", ".join(str(object_at(node, "metadata").get("name")) for node in bare[:3])
    driver = _label(bare[0], "cloud.google.com/gke-gpu-driver-version") or "no label gke-gpu-driver-version"
    return facts.explanation(
        "driver-not-ready",
        f"{len(bare)} nodes with {_label(bare[0], GPU_LABEL)} have been Ready for over ten minutes and offer no GPU",
        (f"{names}: {GPUS} allocatable 0; driver: {driver}", *facts.texts("scheduler")[:1]),
        "`kubectl -n kube-system get pods -o wide` shows the driver's installer on the node; a pool has one owner of "
        "its driver: GKE, the DaemonSet or the operator",
    )


def _mislabelled(facts: GkeFacts) -> Explanation | None:
    """Check for a label that the pod asks for and no node has, nor any pool that the autoscaler knows."""
    texts = [*facts.texts("scheduler"), *facts.texts("no-scale")]
    if not texts or not all("didn't match Pod's node affinity/selector" in text for text in texts):
        return None
    if facts.nodes is None or not facts.texts("no-scale"):
        return None
    for name, wanted in facts.wanted_labels.items():
        values = sorted({value for node in facts.nodes if (value := _label(node, name))})
        if values and not set(wanted) & set(values):
            near = nearest(wanted[0], values) or values[:3]
            return facts.explanation(
                "no-such-node",
                f"no node has {name}={', '.join(wanted)}",
                (f"nodes have {', '.join(values[:6])}", *texts[:1]),
                f"nearest: {', '.join(near)}; the pool may have been replaced since: submit the job again",
            )
    return None


def _label(node: dict[str, Any], name: str) -> str:
    return str(object_at(node, "metadata", "labels").get(name) or "")


def _offers(node: dict[str, Any]) -> bool:
    return str(object_at(node, "status", "allocatable").get(GPUS) or "0") != "0"


def _ready_s(facts: GkeFacts, node: dict[str, Any]) -> float:
    """Return 0 if the node is not Ready."""
    return facts.age_s(lookup.at((lookup.condition(node, "Ready") or {}).get("lastTransitionTime")))


QUEUE = (
    row(
        "nodes-given-up",
        r"pool \S+ is gone",
        "the pool whose nodes the job waited for is gone, and the stack ended its wait",
        f"`accel-jobs retry REF` submits it again, to the pools of now; {_TARGET}",
        "given-up",
    ),
    row(
        "nodes-given-up",
        r"",
        "the nodes did not come in the time that the stack allows, and it ended the wait",
        f"`accel-jobs retry REF` asks for them again; {_TARGET}",
        "given-up",
    ),
    row(
        "queue-missing",
        r"(Local|Cluster)Queue \S+ (doesn't|does not) exist",
        "the queue that the job was submitted to is not there",
        "has the stack been deployed? then submit to a target of now",
        "queue",
    ),
    row(
        "queue-stopped",
        r"Queue \S+ is (inactive|stopped)|Queue is stopped",
        "the queue is stopped, or something that it needs is missing",
        "`kubectl describe clusterqueue` says what; whoever deployed it must start it again",
        "queue",
    ),
    row(
        "queue-too-small",
        r"insufficient quota for \S+ (in )?flavor \S+(, (request|previously considered)| in ClusterQueue)",
        "the job asks for more than the queue has in all, so it waits forever",
        "whoever deployed the queue must raise its quota, or the job must ask for less",
        "queue",
    ),
    row(
        "queue-resource",
        r"resource \S+ unavailable in ClusterQueue",
        "the queue gives no quota of something that the job asks for, so it waits forever",
        "a ClusterQueue must cover cpu, memory and pods as well as GPUs",
        "queue",
    ),
    row(
        "queue-full",
        r"insufficient unused quota (in cohort )?for|borrowing limit for .* exceeded",
        "other jobs use the quota that the job needs",
        "wait, cancel one of them, or give the job a higher gke.priority",
        "queue",
    ),
    row(
        "queue-flavor",
        r"doesn't match node affinity|untolerated taint \S+.* in flavor|flavor \S+ not found",
        "no flavor of the queue is for the nodes that the job asks for",
        _TARGET,
        "queue",
    ),
    row(
        "insufficient",
        r"topology \S+ (doesn't allow|allows) to fit",
        "nodes that are near enough to each other have no room for its pods",
        "wait until others are over, or ask for less: fewer nodes, or a topology that is preferred, not required",
        "queue",
    ),
    row(
        "refused",
        r"namespace doesn't match ClusterQueue selector|validation failed|LimitRange",
        "Kueue does not take the job",
        "the evidence says why; which namespaces a queue takes is written where it is deployed",
        "queue",
    ),
    row(
        "pool-full",
        r"max (cluster|node ?(pool|group)).*(limit|size) reached",
        "the pool that could give the nodes may have no more",
        "wait until some are free, or have max_nodes of the pool raised",
        "check",
    ),
    row(
        "no-such-node",
        r"no nodepool with|cannot be scheduled in (the nodepool|a single zone)",
        "no pool can give the nodes that were asked for all at once",
        _TARGET,
        "check",
    ),
    row("quota", r"quota", kind="check"),
    *of_kind("check", words.NO_ADDRESSES),
    row(
        "nodes-refused",
        r"fail|reject|capacity|exceed|expired",
        "Google does not give the nodes that were asked for all at once",
        "Kueue asks again by itself; another zone or capacity may be quicker: `accel-jobs offers`",
        "check",
    ),
    row(
        "waiting-for-capacity",
        r"",
        "nodes have been asked for all at once, and Google has not given them yet",
        "wait; for flex-start that can take hours",
        "check",
    ),
)
"""Kueue's words about a job that has no pods yet."""

START = (
    row(
        "pod-security",
        r"violates PodSecurity",
        "the namespace does not take such pods",
        "submit it again with this version, whose pods it takes; or have `pod_security: baseline` written for the "
        "namespace in its environment",
        "refused",
    ),
    *of_kind("waiting", words.IMAGE_PLATFORM),
    *of_kind("waiting", *within(_PULL_REASONS, (words.PULL_DENIED, *words.PULL))),
    row("image-pull", _PULL_REASONS, kind="waiting"),
    row(
        "runs-as-root",
        r"CreateContainerConfigError.*runAsNonRoot",
        "the image runs as root, or as a user by name, and its namespace takes neither",
        "write `gke: {user: 1000}` in the job, or USER 1000 in the image; where it must be root, have "
        "`pod_security: baseline` written for the namespace in its environment",
        "waiting",
    ),
    row(
        "secret-unreadable",
        r"CreateContainerConfigError.*(secret \S+ not found|in secret |secret key)",
        "a Secret that the job names is not there",
        kind="waiting",
    ),
    *of_kind("waiting", *within(_NOT_MADE, (words.MOUNT, *words.START))),
    row("not-started", _NOT_MADE, kind="waiting"),
)
"""Words about a pod that is refused, or whose container does not start."""

NODES = (
    # https://docs.cloud.google.com/kubernetes-engine/docs/troubleshooting/cluster-autoscaler-scale-up
    row("quota", r"quota", kind="failed-scale"),
    *of_kind("failed-scale", words.NO_ADDRESSES),
    row(
        "no-capacity",
        r"out of resources|RESOURCE_POOL_EXHAUSTED|stockout|does not have enough resources",
        "Google has no machine of that kind there just now",
        "the autoscaler tries again; more zones, another capacity or another GPU is quicker: `accel-jobs offers`",
        "failed-scale",
    ),
    row(
        "refused", r"", "a node could not be made", "the autoscaler tries again; the evidence says why", "failed-scale"
    ),
    row(
        "pool-full",
        r"max node group size reached|max limit reached|max cluster .*limit",
        "every pool that could hold the pod has as many nodes as it may have",
        "wait until one is free, or have max_nodes of the pool raised",
        "no-scale",
    ),
    row(
        "no-capacity",
        r"in backoff after failed scale-up",
        "a node could not be made a moment ago",
        "the autoscaler tries again in a few minutes",
        "no-scale",
    ),
    row(
        "claim-missing",
        r"persistentvolumeclaim \S+ not found|unbound immediate PersistentVolumeClaims|pvc\(s\) bound to"
        r"|didn't find available persistent volumes to bind",
        "a volume that the job mounts is not there",
        "whoever deployed the target must make its claim",
        "scheduler",
    ),
    row(
        "mount",
        r"volume node affinity conflict|exceed max volume count",
        "the nodes that fit cannot mount a volume of the job: it is in another zone, or they have as many as they may",
        "use a pool in the volume's zone, or a volume or bucket that all zones reach",
        "scheduler",
    ),
)
"""Words of the autoscaler and the scheduler."""

ENDED = (
    row(
        "shared-memory",
        r"EmptyDir volume .shm. exceeds",
        "the job wrote more to shared memory (/dev/shm) than shm_mib",
        kind="pod",
    ),
    # From Kubernetes 1.26 on there is a condition too, in place of the reason as well:
    # https://github.com/kubernetes/kubernetes/issues/105467
    row(
        "evicted-disk",
        r"^(Evicted|TerminationByKubelet): .*(ephemeral|disk|storage|inodes|EmptyDir)",
        "the job wrote more to the node's disk than there was",
        "give disk_gib, write to a bucket or a volume, or use a pool with larger disks",
        "pod",
    ),
    row(
        "evicted",
        r"^Evicted: |^TerminationByKubelet: .*(low on resource|Pressure)",
        "the node was short of something, and put the pod out",
        "the evidence says of what",
        "pod",
    ),
)
"""Words about a pod that the kubelet put out, which has the condition of a lost pod too."""

FAILED = (
    # https://github.com/capactio/capact/pull/679
    row(
        "preempted",
        r"^(Terminated|Shutdown|NodeShutdown|NodeLost|Preempting): ",
        "its node was shut down under it",
        f"{_AGAIN}; {_STAY}",
        "pod",
    ),
    # https://github.com/kubernetes/kubernetes/issues/97131
    row("gpu-failed", r"^UnexpectedAdmissionError.*(GPU is lost|healthy devices)", kind="pod"),
    # https://github.com/kubernetes/kubernetes/issues/130145
    row(
        "not-started",
        r"^(UnexpectedAdmissionError|OutOf\w+|NodeAffinity|NodePorts|TopologyAffinityError)\b",
        "the node that was chosen for it did not take it",
        RETRY,
        "pod",
    ),
    # https://github.com/kubernetes/kubernetes/issues/104107
    row(
        "host-lost",
        r"^ContainerStatusUnknown",
        "its container was no longer there when its pod ended, and nobody saw its exit code",
        RETRY,
        "container",
    ),
    # The exit code, 128, is the kubelet's: https://github.com/kubernetes/kube-state-metrics/issues/1861
    *of_kind("container", *within(_NOT_MADE, (words.MOUNT, *words.START))),
    row("not-started", _NOT_MADE, kind="container"),
    row("timeout", r"^DeadlineExceeded", kind="pod"),
    row("out-of-memory", r"^OOMKilled", kind="container"),
)
"""Words about an ended pod and its container."""

RULES: dict[Phase, tuple[Rule[GkeFacts], ...]] = {
    Phase.QUEUED: (*QUEUE, _in_queue),
    Phase.STARTING: (
        *START,
        _without_driver,
        _mislabelled,
        _scaling,
        *NODES,
        _taint,
        _insufficient,
        *of_kind("sandbox", words.NO_ADDRESSES),
        row("secret-unreadable", r"secret \S+ not found|non-existent secret key", kind="mount"),
        row("mount", r"", kind="mount"),
        _starting,
    ),
    Phase.RUNNING: (_silent_node, _some_wait, _well),
    Phase.SUCCEEDED: (_well,),
    Phase.FAILED: (_stopped, *ENDED, _preempted, *FAILED, _program),
}
