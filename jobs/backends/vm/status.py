"""Status of a job, from its record and its state in the cloud: as it will be after the next steps."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from accel.json_values import object_at

from ...model.owners import owner_of
from ..base import Attempt as Tried
from ..base import JobRef, Phase, Status
from .record import CANCELLED, ENDED, GONE, LOST, MADE, NO_CAPACITY, SUCCEEDED, Attempt, Record, Result
from .state_machine import ABSENT, MachineState, Write, decide, may_go_on

_TAKEN = {LOST: "its machine was taken away", NO_CAPACITY: "no zone had a machine for it"}
_PHASES = {"waiting": Phase.QUEUED, "starting": Phase.STARTING, "running": Phase.RUNNING}


def status_of(record: Record, seen: MachineState, results: Mapping[int, Result], now: datetime) -> Status:
    foreseen = record
    if not record.ended and record.last.state == MADE:
        step = decide(record, seen, results, now)
        foreseen = step.record if isinstance(step, Write) else record
    phase, reason = _phase(foreseen, seen)
    last = foreseen.last
    made = [attempt for attempt in record.attempts if attempt.made]
    started = [attempt.started for attempt in made if attempt.started]
    return Status(
        ref=JobRef(record.kind, str(record.body["bucket"]), record.name),
        name=record.job_name,
        phase=phase,
        native=record.outcome if record.ended else _native(last, seen),
        reason=reason,
        exit_code=exit_code(last),
        attempts=len(made),
        lost=foreseen.count(LOST),
        lost_gpu_hours=_lost_gpu_hours(foreseen),
        taken=_TAKEN.get(last.outcome) if phase is Phase.FAILED else None,
        created=record_time(record.created),
        started=record_time(started[0]) if started else None,
        stopped=record_time(record.ended or last.ended) if phase.ended else None,
        target=record.target or None,
        gpus=int(record.body.get("chips") or 0) or int(record.body.get("gpus") or 0) * record.hosts,
        owner=owner_of(_labels(record.body)),
    )


def _labels(body: Mapping[str, Any]) -> Mapping[str, Any]:
    machine = object_at(body["machine"])
    made = object_at(machine.get("properties") or machine.get("node"))
    return object_at(made, "labels")


def _phase(record: Record, seen: MachineState) -> tuple[Phase, str | None]:
    last = record.last
    if record.ended:
        return (Phase.SUCCEEDED, None) if record.outcome == SUCCEEDED else (Phase.FAILED, record.reason)
    if last.state in (ENDED, GONE):
        if last.outcome == SUCCEEDED:
            return Phase.SUCCEEDED, None
        if last.outcome != CANCELLED and not record.cancelled and may_go_on(record):
            return Phase.QUEUED, last.reason or None
        return Phase.FAILED, record.cancelled or last.reason
    before = record.attempts[-2].reason if len(record.attempts) > 1 else None
    return _PHASES.get(seen.state, Phase.QUEUED), seen.reason or before


def _native(last: Attempt, seen: MachineState) -> str:
    if last.state in (ENDED, GONE):
        return last.outcome
    return seen.native if seen.state != ABSENT else last.state


def exit_code(attempt: Attempt) -> int | None:
    codes = [code for code in attempt.exit_codes.values() if code is not None]
    return next((code for code in codes if code), 0 if codes else None)


def _lost_gpu_hours(record: Record) -> float | None:
    gpus = int(record.body.get("gpus") or 0) * record.hosts
    lost = [(a.started, a.ended) for a in record.attempts if a.outcome == LOST and a.started and a.ended]
    if not gpus or not lost:
        return None
    spans = [datetime.fromisoformat(end) - datetime.fromisoformat(start) for start, end in lost]
    return gpus * sum(span.total_seconds() for span in spans) / 3600


def record_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def attempts(record: Record) -> list[Tried]:
    """Return each request for machines. Records do not say when a machine was found, which is before it ran."""
    return [
        Tried(
            number,
            created=record_time(each.made or each.planned),
            started=record_time(each.started),
            stopped=record_time(each.ended),
            exit_code=exit_code(each),
            reason=": ".join(part for part in (each.zone, each.outcome, each.reason) if part) or None,
            lost=each.outcome == LOST,
        )
        for number, each in enumerate(record.attempts, 1)
    ]
