"""Why a job on machines of its own waits or failed: one cause, judged by its record and Google. Reads only."""

from collections.abc import Callable
from dataclasses import replace

from accel.clouds.google.api import Google
from accel.contract import buckets
from accel.diagnostics.errors import NotFound

from ...base import Explanation, JobRef, Phase
from ..cloud_messages import ReportingMachines
from ..records import Records
from . import ended, waiting
from .explanation import because
from .facts import Facts
from .table import CAUSES

__all__ = ["CAUSES", "explain"]


def explain(google: Google, records: Records, machines: ReportingMachines, ref: JobRef) -> Explanation:
    """Raises NoCredentials, and CloudRefused or CloudSilent where the record itself cannot be read."""
    where = f"gs://{records.bucket}/{buckets.JOBS}"
    try:
        record, _ = records.read(ref.id)
    except NotFound as missing:
        step = "check the reference; the stack's bucket may delete records after a time"
        return because("unknown-job", f"{where} has no job {ref.id}", (missing.message,), step)
    if record.kind != ref.kind:
        right = JobRef(record.kind, ref.scope, ref.id)
        return because("unknown-job", f"the job is of kind {record.kind}", (where,), f"its reference is {right}")
    facts = Facts(google, records, machines, ref, record)
    order = (_unknown,) if facts.blind else _ORDER[facts.status.phase]
    told = next((said for cause in order if (said := cause(facts))), None) or _unknown(facts)
    if facts.status.phase is Phase.FAILED and not facts.blind and (there := ended.left(facts)):
        told = replace(told, evidence=(*told.evidence, there.reason, *there.evidence[:1]))
    return replace(told, unread=tuple(facts.unread))


def _unknown(facts: Facts) -> Explanation:
    record = facts.record
    state = f"attempt {record.last.number} in {record.last.zone} is {record.last.state} {record.last.outcome}".rstrip()
    now = () if facts.blind else (f"the job is {facts.status.phase} ({facts.status.native}), {facts.status.reason}",)
    evidence = (*now, state, *waiting.attempts(facts), *facts.messages.states, *facts.history[-3:])
    step = "`accel-jobs logs REF` shows what its machines printed"
    return because("unknown", "unknown: no known cause fits what could be read", evidence, step)


_ORDER: dict[Phase, tuple[Callable[[Facts], Explanation | None], ...]] = {
    Phase.QUEUED: (waiting.over, waiting.planned, waiting.queued, waiting.starting),
    Phase.STARTING: (waiting.planned, waiting.starting),
    Phase.RUNNING: (waiting.silent, waiting.missing, waiting.unhealthy, waiting.preparing, waiting.well),
    Phase.SUCCEEDED: (ended.left, waiting.well),
    Phase.FAILED: ended.CAUSES_OF_FAILURE,
}
