"""Diagnosis of VM jobs that wait or failed, from their records, their hosts and Google. Reads only."""

from dataclasses import replace

from accel.clouds.google.api import Google
from accel.contract import buckets
from accel.diagnostics.errors import NotFound

from ...base import Explanation, JobRef, Phase
from ...vm.cloud_messages import ReportingMachines
from ...vm.records import Records
from ..engine import Rule, diagnose
from . import end, waiting
from .facts import VmFacts

__all__ = ["explain"]


def explain(google: Google, records: Records, machines: ReportingMachines, ref: JobRef) -> Explanation:
    where = f"gs://{records.bucket}/{buckets.JOBS}"
    try:
        record, _ = records.read(ref.id)
    except NotFound as missing:
        step = "check the reference; the stack's bucket may delete records after a time"
        return VmFacts.explanation("unknown-job", f"{where} has no job {ref.id}", (missing.message,), step)
    if record.kind != ref.kind:
        right = JobRef(record.kind, ref.scope, ref.id)
        reason = f"the job is of kind {record.kind}"
        return VmFacts.explanation("unknown-job", reason, (where,), f"its reference is {right}")
    facts = VmFacts(google, records, machines, ref, record)
    if facts.blind:
        return diagnose(facts, ())
    explained = diagnose(facts, RULES[facts.status.phase])
    if facts.status.phase is Phase.FAILED and (there := end.unreleased_machines(facts)):
        evidence = (*explained.evidence, there.reason, *there.evidence[:1])
        return replace(explained, evidence=evidence, unread=facts.unread)
    return explained


RULES: dict[Phase, tuple[Rule[VmFacts], ...]] = {
    Phase.QUEUED: (waiting.next_attempt, waiting.planned_attempt, waiting.queued_request, waiting.machine_starting),
    Phase.STARTING: (waiting.planned_attempt, waiting.machine_starting),
    Phase.RUNNING: (
        waiting.agent_silent, waiting.missing, waiting.unhealthy, waiting.starting, waiting.well,
    ),
    Phase.SUCCEEDED: (end.unreleased_machines, waiting.well),
    Phase.FAILED: end.RULES,
}  # fmt: skip
