"""Why a job waits or failed: one cause, judged by what the cluster says. Reads only."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.responses import part, parts
from accel.diagnostics.errors import NotFound

from ... import outcome
from ...base import Explanation, JobRef, Phase
from .. import labels, lookup
from ..labels import Scope
from ..status import pending
from . import facts
from .facts import Facts
from .table import CAUSES, FAILED, OF_GKE, WAITING, Row

__all__ = ["CAUSES", "explain"]

NEW_S = 60
"""Until then silence is no sign."""
WIDTH = 400


def explain(api: Api, scope: Scope, ref: JobRef) -> Explanation:
    """Raises NoCredentials, and CloudRefused or CloudSilent where the job itself cannot be read."""
    try:
        job = lookup.look(api, scope, ref)
    except NotFound as missing:
        return _because(
            "unknown-job",
            f"namespace {scope.namespace} of cluster {scope.cluster} has no job {ref.id}",
            (missing.message,),
            "check the reference; a job is deleted gke.keep_s after its end, seven days without it",
        )
    facts = Facts(api, scope, ref, job)
    told = next((said for cause in _ORDER[facts.status.phase] if (said := cause(facts))), None) or _unknown(facts)
    return replace(told, unread=tuple(facts.unread))


def _because(cause: str, reason: str, evidence: tuple[str, ...], next_step: str) -> Explanation:
    assert cause in CAUSES, cause
    return Explanation(cause, reason, tuple(_cut(line) for line in evidence if line), next_step)


def _by(rows: tuple[Row, ...], *places: str) -> Callable[[Facts], Explanation | None]:
    """The first row whose words stand where it looks; `places` limits the rows."""

    def judged(facts: Facts) -> Explanation | None:
        for row in rows:
            if places and row.where not in places:
                continue
            told = next((text for text in facts.texts(row.where) if row.pattern.search(text)), None)
            if told is not None:
                return _because(row.cause, row.reason, (told, *_whose(facts, row.where)), row.next_step)
        return None

    return judged


def _whose(facts: Facts, where: str) -> tuple[str, ...]:
    """Which of several pods the words are of."""
    if where in ("queue", "check", "given-up"):
        return facts.asked_again() if where == "check" else ()
    several = facts.job.several
    return (f"{several} {lookup.index(facts.pod)} of {facts.job.count}",) if several and facts.pod else ()


def _in_queue(facts: Facts) -> Explanation | None:
    job = facts.job
    if job.queue is None:
        return None
    if job.workload is None:
        if facts.age_s < NEW_S:
            return _because("new", "the job was made a moment ago", (), "wait a few seconds")
        step = "is Kueue running? `kubectl get pods -n kueue-system`; you need a role that lets you list workloads"
        return _because("queue-silent", f"nothing is known of the job in queue {job.queue}", (), step)
    told = tuple(
        f"{each.get('type')}: {each.get('message')}" for each in parts(part(job.workload, "status"), "conditions")
    )
    return _because("behind-others", f"the job waits for its turn in queue {job.queue}", told, "wait")


def _on_the_way(facts: Facts) -> Explanation | None:
    """The newest word of the autoscaler counts: it may have given up since."""
    newest = next((each for each in facts.events if each.get("reason") in _SCALING), dict[str, Any]())
    if newest.get("reason") != "TriggeredScaleUp":
        return None
    return _because("nodes-starting", "a node is on its way", (str(newest.get("message")),), "wait a few minutes")


_SCALING = ("TriggeredScaleUp", "NotTriggerScaleUp", "FailedScaleUp")


def _taint(facts: Facts) -> Explanation | None:
    text = next((text for text in facts.texts("scheduler") if "taint" in text), None)
    if text is None or "Insufficient" in text:
        return None
    step = "submit it again: tolerations are those of the target's pools; or use a target whose pools have it"
    return _because("taint", "nodes have a taint that the job does not tolerate", (text,), step)


def _insufficient(facts: Facts) -> Explanation | None:
    text = next(iter(facts.texts("scheduler")), None)
    if text is None:
        return None
    told = (text, *facts.texts("no-scale")[:1])
    if "Insufficient" not in text:
        return _because("no-such-node", "no node that there is fits, and none is on its way", told, _LATER)
    return _because("insufficient", "what the nodes have is in use, and no other node is on its way", told, _LATER)


_LATER = "wait for the autoscaler, which looks every few seconds; `accel-jobs offers` shows other targets"


def _starting(facts: Facts) -> Explanation | None:
    if facts.age_s < NEW_S and not facts.pod:
        return _because("new", "the job was made a moment ago", (), "wait a few seconds")
    if part(facts.pod, "spec").get("nodeName"):
        told = (f"node {part(facts.pod, 'spec').get('nodeName')}", pending(facts.pod) or "")
        return _because("starting", "a node has it; the image is pulled and the container made", told, "wait")
    return None


def _cancelled(facts: Facts) -> Explanation | None:
    reason = facts.job.annotations.get(labels.CANCELLED)
    if reason is None:
        return None
    return _because(
        "stopped", "someone cancelled the job", (f"reason: {reason}",), "`accel-jobs retry REF` runs it again"
    )


def _lost(facts: Facts) -> Explanation | None:
    if not lookup.is_lost(facts.pod):
        return None
    condition = lookup.condition(facts.pod, "DisruptionTarget") or {}
    told = (f"{condition.get('reason')}: {condition.get('message', '')}", f"{facts.status.lost} attempts were lost")
    step = "leave lost_retries out, so that what is lost is run again; `spot: false` asks for nodes that stay"
    return _because("spot-reclaim", "its node was taken away too often", told, step)


def _outcome(facts: Facts) -> Explanation | None:
    """What the exit code and the end of the log say."""
    ended = outcome.Ended(
        facts.status.exit_code,
        facts.lines,
        facts.gpus,
        memory_mib=_mib(facts),
    )
    told = outcome.explain(ended)
    if told is None:
        return None
    told = replace(told, evidence=(*told.evidence, *_whose(facts, "pod")))
    return replace(told, next_step=OF_GKE.get(told.cause, told.next_step))


def _mib(facts: Facts) -> int | None:
    text = str(part(facts.job.container, "resources", "limits").get("memory") or "")
    return int(text.removesuffix("Mi")) if text.removesuffix("Mi").isdigit() else None


def _well(facts: Facts) -> Explanation:
    if facts.status.phase is Phase.SUCCEEDED:
        return _because("succeeded", "the job has succeeded: there is nothing to explain", (), "")
    return _because("running", "the job runs: it neither waits nor has it failed", (), "`accel-jobs logs -f REF`")


def _some_wait(facts: Facts) -> Explanation | None:
    """Of an array that runs: what holds the tasks that do not, or that it is not their turn."""
    waiting, running = facts.status.tasks.get("Pending", 0), facts.status.tasks.get("Running", 0)
    if not waiting:
        return None
    counts = f"of {facts.job.count} tasks {_verb(running, 'run')}, {_verb(waiting, 'wait')}"
    if not facts.pod:
        most = facts.job.job_spec.get("parallelism")
        step = "`parallelism` in the job file lets more run at once"
        told = (counts, f"parallelism is {most}")
        return _because("parallelism", "the job runs, and some of its tasks wait for their turn", told, step)
    held = next((said for cause in _ORDER[Phase.STARTING] if (said := cause(facts))), None)
    held = held or _because("new", "they were made a moment ago", (), "wait a few seconds")
    reason = f"the job runs, and some of its tasks wait: {held.reason}"
    return replace(held, reason=reason, evidence=(counts, *held.evidence))


def _verb(count: int, verb: str) -> str:
    return f"{count} {verb}{'s' if count == 1 else ''}"


def _unknown(facts: Facts) -> Explanation:
    status = facts.status
    told = (f"the job is {status.phase} ({status.native}), {status.reason or 'without a reason'}",)
    events = tuple(f"{each.get('reason')}: {each.get('message')}" for each in facts.events[:5])
    step = (
        f"`kubectl -n {facts.scope.namespace} describe pods -l {labels.OBJECT}={facts.ref.id}` shows all that is known"
    )
    return _because("unknown", "unknown: no known cause fits what could be read", (*told, *events), step)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


_ORDER: dict[Phase, tuple[Callable[[Facts], Explanation | None], ...]] = {
    Phase.QUEUED: (_by(WAITING, "given-up", "queue", "check"), _in_queue),
    Phase.STARTING: (
        _by(WAITING, "waiting", "refused"),
        facts.without_driver,
        facts.mislabelled,
        _on_the_way,
        _by(WAITING, "failed-scale", "no-scale", "scheduler"),
        _taint,
        _insufficient,
        _by(WAITING, "mount"),
        _starting,
    ),
    Phase.RUNNING: (_some_wait, _well),
    Phase.SUCCEEDED: (_well,),
    Phase.FAILED: (_cancelled, _lost, _by(FAILED), _outcome),
}
