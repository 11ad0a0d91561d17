"""Why a custom job of Vertex AI waits or failed: one cause, judged by what Google says.

Reads only, and each fact when it is first asked for. What may not be read makes no cause true.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

from accel.clouds.google.api import Google
from accel.clouds.quota_cache import Limit
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound

from ... import outcome
from ...base import Explanation, JobRef
from ...google_logging import newest
from ...vm.explain.explanation import cut, span
from .. import quota
from ..labels import Scope
from ..logs import SERVICE, query, since, text_of
from ..lookup import Job, listed, look
from ..status import STOCKOUT, TAKEN, taken
from .table import CAUSES, FAILED, OF_VERTEX

__all__ = ["CAUSES", "explain"]


TAIL_LINES = 100
HOLDING = ("JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_CANCELLING")
"""Jobs in these states have machines."""

Value = TypeVar("Value")


class Facts:
    """One job, now."""

    def __init__(self, google: Google, scope: Scope, job: Job) -> None:
        self._google, self._scope = google, scope
        self.job = job
        self.unread: list[str] = []
        self.now = datetime.now(UTC)

    def since(self, field: str) -> float:
        """Seconds since a time of the job's; 0 for one that there is not."""
        at = self.job.at(field)
        return (self.now - at).total_seconds() if at else 0.0

    @property
    def ran_s(self) -> float:
        """How long it ran, or has been running."""
        start, end = self.job.at("startTime"), self.job.at("endTime") or self.now
        return (end - start).total_seconds() if start else 0.0

    @cached_property
    def lines(self) -> tuple[str, ...] | None:
        """The end of the log of the replica that failed, or of the first; None: it could not be read."""
        return self._tail(self.replica)

    @property
    def replica(self) -> str:
        """Whose log is looked at."""
        return self.job.failed or next(iter(self.job.replicas), "workerpool0-0")

    @cached_property
    def service_log(self) -> tuple[str, ...]:
        """What Vertex itself said of the job last."""
        return self._tail(SERVICE) or ()

    def _tail(self, task: str) -> tuple[str, ...] | None:
        asked = f'{query(self.job, task)} AND timestamp>="{since(self.job):%Y-%m-%dT%H:%M:%SZ}"'
        found = self._ask("its log", lambda: newest(self._google, self._scope.project, asked, TAIL_LINES))
        return None if found is None else tuple(line for entry in found for line in text_of(entry).splitlines())

    @cached_property
    def needs(self) -> Mapping[str, float]:
        """How much of which quota of Vertex the job takes."""
        return quota.usage([self.job.spec], self._scope.region)

    @cached_property
    def usage(self) -> Mapping[str, float] | None:
        """How much the region's other jobs take; None: it could not be read."""
        states = " OR ".join(f'state="{state}"' for state in HOLDING)

        def read() -> Mapping[str, float]:
            others = [each.spec for each in listed(self._google, self._scope, states) if each.state in HOLDING]
            return quota.usage(others, self._scope.region)

        return self._ask("the region's other jobs", read)

    @cached_property
    def limits(self) -> Mapping[str, Limit]:
        """Of the quotas that the job takes."""
        found = quota.limits(self._google, self._scope.project, self.job.spec, self._scope.region)
        self.unread.extend(f"{name}: {limit.why}" for name, limit in found.items() if limit.value is None)
        return found

    def _ask(self, what: str, call: Callable[[], Value]) -> Value | None:
        try:
            return call()
        except (CloudRefused, CloudSilent, NotFound) as error:
            self.unread.append(f"{what}: {error.message}")
            return None

    @property
    def machines(self) -> str:
        """The first pool's, in a word or two."""
        machine: dict[str, Any] = self.job.machine
        count, kind = machine.get("acceleratorCount"), machine.get("acceleratorType")
        return f"{machine.get('machineType')}{f' with {count} x {kind}' if kind else ''}"


SHOWN = 3
"""Lines of Vertex's own."""
FLEX_WAIT_S = 24 * 3600
"""Of flex-start, where the job does not say: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec"""
TRANSIENT = {6, 134, 11, 139}
"""Exit codes after which Vertex tries again up to three times. Source: the page of the training service."""
AGAIN = "`accel-jobs retry REF` runs it again"


def explain(google: Google, scope: Scope, ref: JobRef) -> Explanation:
    """Raises NoCredentials, and CloudRefused or CloudSilent where the job itself cannot be read."""
    try:
        facts = Facts(google, scope, look(google, scope, ref.id))
    except NotFound as missing:
        reason = f"project {scope.project} has no job {ref.id} in {scope.region}"
        step = "check the reference: its project and region; a job that somebody deletes is gone"
        return _because("unknown-job", reason, (missing.message,), step)
    causes = _ORDER.get(facts.job.state, ())
    told = next((said for cause in causes if (said := cause(facts))), None) or _unknown(facts)
    return replace(told, unread=tuple(facts.unread))


def _because(cause: str, reason: str, evidence: Iterable[str], next_step: str) -> Explanation:
    assert cause in CAUSES, cause
    return Explanation(cause, reason, tuple(cut(line) for line in evidence if line), next_step)


def _unknown(facts: Facts) -> Explanation:
    evidence = (f"the job is {facts.job.state}", facts.job.error, *facts.service_log[-SHOWN:])
    step = "`accel-jobs logs REF` shows what it printed"
    return _because("unknown", "unknown: no known cause fits what could be read", evidence, step)


def _queued(facts: Facts) -> Explanation:
    waits = f"queued for {span(facts.since('createTime'))}"
    for name, need in facts.needs.items():
        limit = facts.limits[name].value
        if limit is None or limit < 0:
            continue
        if need > limit:
            reason = f"it takes {need:g} of {name} in its region, and the limit is {limit:g}"
            step = "ask for more of it, of the Vertex AI API, or cancel the job: it waits for as long as it takes"
            return _because("quota-too-small", reason, (waits,), step)
        held = (facts.usage or {}).get(name, 0)
        if facts.usage is not None and held + need > limit:
            reason = f"it takes {need:g} of {name}, and other jobs have {held:g} of {limit:g}"
            step = "wait until they are over, cancel one, or ask for more of that quota of the Vertex AI API"
            return _because("waits-for-quota", reason, (waits,), step)
    reason = "Vertex has not taken it up yet; for want of quota a job stays so until there is some"
    return _because("queued", reason, (waits, *facts.service_log[-SHOWN:]), "wait; it is usually brief")


def _pending(facts: Facts) -> Explanation:
    job, said = facts.job, facts.service_log[-SHOWN:]
    if job.at("startTime"):
        spot = " (its Spot machines may have been taken away, which Vertex makes up for six times)"
        reason = f"it ran, and Vertex starts it again{spot if job.strategy == 'SPOT' else ''}"
        return _because("starts-again", reason, said, "wait; a program goes on from where it saved")
    if job.strategy == "FLEX_START":
        limit = job.scheduling.get("maxWaitDuration", f"{FLEX_WAIT_S}s")
        reason = f"it waits for {facts.machines} by flex-start, for {limit} at most"
        step = "wait, or give `vertex.wait_s`; without flex-start a job without machines fails instead of waiting"
        return _because("waiting-for-capacity", reason, said, step)
    if job.spec.get("persistentResourceId"):
        reason = f"machines of the persistent resource {job.spec['persistentResourceId']} are to run it"
        return _because("waiting-for-machines", reason, said, "wait until they are free, or leave it out")
    reason = f"its machines ({facts.machines}) and containers are being made ready"
    evidence = (f"made {span(facts.since('createTime'))} ago", *said)
    return _because("starting", reason, evidence, "wait; large images and GPUs take some minutes")


def _running(facts: Facts) -> Explanation:
    last = outcome.last(facts.lines)
    return _because(
        "running", f"it has been running for {span(facts.ran_s)}", last, "`accel-jobs logs -f REF` shows it"
    )


def _stopping(facts: Facts) -> Explanation:
    return _because("stopping", "someone cancelled it, and it stops", facts.service_log[-SHOWN:], "wait")


def _succeeded(facts: Facts) -> Explanation:
    return _because("succeeded", f"it succeeded after {span(facts.ran_s)}", (), "nothing")


def _timeout(facts: Facts) -> Explanation | None:
    """Vertex cancels a job whose time is over: https://github.com/tensorflow/tfx/issues/6223"""
    limit = str(facts.job.scheduling.get("timeout", "")).removesuffix("s")
    if not limit.replace(".", "", 1).isdigit() or facts.ran_s < float(limit):
        return None
    reason = f"it ran longer than timeout_s, which is {float(limit):g}"
    return _because(
        "timeout", reason, (facts.job.error, *outcome.last(facts.lines)), "raise timeout_s, or save and resume"
    )


def _cancelled(facts: Facts) -> Explanation:
    return _because("cancelled", "someone cancelled it", (facts.job.error,), AGAIN)


def _expired(facts: Facts) -> Explanation:
    return _because("expired", "Vertex gave it up", (facts.job.error, *facts.service_log[-SHOWN:]), AGAIN)


def _no_machines(facts: Facts) -> Explanation | None:
    if not STOCKOUT.search(facts.job.error):
        return None
    if taken(facts.job) == TAKEN:
        reason = f"its Spot machines ({facts.machines}) were taken away more often than Vertex makes up for"
        return _because("spot-taken", reason, (facts.job.error,), f"{AGAIN}; spot: false asks for machines that stay")
    reason = f"the region has no {facts.machines} just now; quotas do not help"
    step = f"{AGAIN}; another region, another GPU, or `vertex: {{provisioning: flex-start}}`, which waits for them"
    return _because("no-capacity", reason, (facts.job.error,), step)


def _by_words(facts: Facts) -> Explanation | None:
    for row in FAILED:
        if row.pattern.search(facts.job.error):
            evidence = (facts.job.error, *(outcome.last(facts.lines) if facts.job.failed else ()))
            return _because(row.cause, row.reason, evidence, row.next_step)
    return None


def _exited(facts: Facts) -> Explanation | None:
    code = facts.job.exit_code
    gpus = int(facts.job.machine.get("acceleratorCount") or 0)
    found = outcome.explain(outcome.Ended(code, facts.lines, gpus)) if code is not None else None
    if found is None:
        return None
    several = (f"replica {facts.replica}",) if len(facts.job.replicas) > 1 else ()
    tried = ("Vertex tried again up to three times, as it does for this code",) if code in TRANSIENT else ()
    step = OF_VERTEX.get(found.cause, found.next_step)
    return _because(found.cause, found.reason, (*found.evidence, *several, *tried), step)


_ORDER: dict[str, tuple[Callable[[Facts], Explanation | None], ...]] = {
    "JOB_STATE_QUEUED": (_queued,),
    "JOB_STATE_PENDING": (_pending,),
    "JOB_STATE_RUNNING": (_running,),
    "JOB_STATE_UPDATING": (_running,),
    "JOB_STATE_CANCELLING": (_stopping,),
    "JOB_STATE_SUCCEEDED": (_succeeded,),
    "JOB_STATE_CANCELLED": (_timeout, _cancelled),
    "JOB_STATE_EXPIRED": (_expired,),
    "JOB_STATE_FAILED": (_no_machines, _by_words, _exited),
}
