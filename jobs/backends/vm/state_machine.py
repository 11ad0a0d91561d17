"""Next step of a job, from its record and from what the cloud has."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from accel.diagnostics.errors import CloudRefused
from accel.rules.jobs import exit_codes

from . import labels
from .record import (
    CANCELLED,
    ENDED,
    EXPIRED,
    FAILED,
    GONE,
    LOST,
    MADE,
    NO_CAPACITY,
    REFUSED,
    SUCCEEDED,
    Attempt,
    Record,
    Result,
)

ABSENT, WAITING, STARTING, RUNNING, TAKEN, BROKEN, LEAVING = (
    *("absent", "waiting", "starting", "running", "lost", "failed", "leaving"),
)

START_S = 3600
"""Time after which machines that are still starting will not start."""
SILENT_S = 900
"""Time after a job's timeout in which its machines may still report its end."""
AGAIN_S = 300
"""Time that a declared queue waits after a refusal, or without capacity, before it requests TPUs again."""
REMEMBERED = 20
"""Number of attempts that the record of a declared queue keeps: it may have any number."""

_SAID = {
    exit_codes.STOPPED: "it stopped because its machine is taken away",
    exit_codes.BAD_NODE: "its machine is not fit for it",
}
"""Reason for a lost machine, by the command's exit code."""


@dataclass(frozen=True)
class MachineState:
    """State of an attempt's machines in the cloud; `native` is the cloud's own name for it."""

    state: str
    native: str
    reason: str = ""
    stockout: bool = False
    """Whether the state is `failed` because the zone had no capacity."""


class NoCapacity(CloudRefused):
    """A zone refused at once because it has no capacity. `zones` are those that it named instead."""

    def __init__(self, message: str, zones: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.zones = zones


class Machines(Protocol):
    """Machines of attempts in the cloud. Every call may be repeated."""

    def make(self, record: Record, attempt: Attempt) -> None:
        """Create the attempt's machines by name, except existing ones. Raise NoCapacity, CloudRefused, CloudSilent."""
        ...

    def look(self, record: Record, attempt: Attempt) -> MachineState:
        """Return the state of the attempt's machines. Read-only."""
        ...

    def remove(self, record: Record, attempt: Attempt) -> None:
        """Request the removal of the attempt's machines and return at once. Missing machines are no error."""
        ...


@dataclass(frozen=True)
class Write:
    """Step: replace the record with this one."""

    record: Record


@dataclass(frozen=True)
class Make:
    """Step: create the last attempt's machines."""


@dataclass(frozen=True)
class Remove:
    """Step: remove the last attempt's machines."""


@dataclass(frozen=True)
class Wait:
    """Step: nothing until something changes in the cloud."""


@dataclass(frozen=True)
class Done:
    """Step: nothing, because the job has ended."""


Step = Write | Make | Remove | Wait | Done


def decide(record: Record, seen: MachineState, results: Mapping[int, Result], now: datetime) -> Step:
    """Return the next step. `seen` and `results` are those of the last attempt."""
    if record.ended:
        return Done()
    match record.last.state:
        case "planned":
            return _planned(record, seen, results, now)
        case "made":
            return _made(record, seen, results, now)
        case "ended":
            if seen.state == ABSENT:
                return Write(_next(record.with_last(state=GONE), now))
            return Wait() if seen.state == LEAVING else Remove()
        case _:
            return Write(_next(record, now))


def _planned(record: Record, seen: MachineState, results: Mapping[int, Result], now: datetime) -> Step:
    if seen.state == ABSENT and not results:
        if record.cancelled:
            return end(record, CANCELLED, record.cancelled, now)
        if record.standing is not None and (over := _over(record, now)):
            return end(record, EXPIRED, over, now)
        return Wait() if _pauses(record, now) else Make()
    return Write(record.with_last(state=MADE, made=_stamp(now)))


def _made(record: Record, seen: MachineState, results: Mapping[int, Result], now: datetime) -> Step:
    if verdict := _verdict(record, results):
        outcome, reason = verdict
        codes = {str(host): result.exit_code for host, result in sorted(results.items())}
        return end(record, outcome, reason, now, exit_codes=codes)
    if record.cancelled:
        return end(record, CANCELLED, record.cancelled, now)
    match seen.state:
        case "absent":
            return end(record, LOST, seen.reason or "its machines are no longer there", now)
        case "lost":
            return end(record, LOST, seen.reason or f"the cloud took it away ({seen.native})", now)
        case "failed" if record.standing is not None and (over := _over(record, now)):
            return end(record, EXPIRED, f"{over}: {seen.reason or seen.native}", now)
        case "failed":
            return end(record, NO_CAPACITY if seen.stockout else REFUSED, seen.reason or seen.native, now)
        case "waiting":
            limit = record.body.get("zone_wait_s")
            if limit and _since(record.last.made, now) > limit:
                return end(record, EXPIRED, f"waited {limit} s in {record.last.zone} ({seen.native})", now)
            return Wait()
        case "starting" if record.last.started is None:
            if _since(record.last.made, now) > START_S + (record.body.get("zone_wait_s") or 0):
                return end(record, LOST, f"has been {seen.native} for more than {START_S} s", now)
            return Wait()
        case "running" | "starting":  # what has run before is being repaired
            return _running(record, now)
        case _:
            return Wait()


def _running(record: Record, now: datetime) -> Step:
    if record.last.started is None:
        return Write(record.with_last(started=_stamp(now)))
    limit = record.body.get("timeout_s")
    if limit and _since(record.last.started, now) > limit + SILENT_S:
        return end(record, FAILED, f"its machines told of no end {SILENT_S} s after its timeout of {limit} s", now)
    return Wait()


def _verdict(record: Record, results: Mapping[int, Result]) -> tuple[str, str] | None:
    """Return outcome and reason by hosts' results: all must succeed, and one failure ends the attempt. None: open."""
    # A host that was stopped because of another says so; the other's own words count.
    for result in sorted(results.values(), key=lambda each: ((each.reason or "").startswith("stopped: "), each.host)):
        on = f" on host {result.host}" if record.hosts > 1 else ""
        if result.reason == "preempted":
            return LOST, f"the machine was taken away{on}"
        if result.reason == "exited" and result.exit_code in exit_codes.LOST:
            return LOST, f"{_SAID[result.exit_code]}{on} (exit code {result.exit_code})"
        if (result.exit_code, result.reason) != (0, "exited"):
            said = result.reason if result.reason not in (None, "exited") else f"exit code {result.exit_code}"
            return FAILED, f"{said}{on}"
    return (SUCCEEDED, "") if len(results) == record.hosts else None


def end(record: Record, outcome: str, reason: str | None, now: datetime, **more: object) -> Write:
    return Write(record.with_last(state=ENDED, outcome=outcome, reason=reason or "", ended=_stamp(now), **more))


def _next(record: Record, now: datetime) -> Record:
    """Return the record with another attempt, or with its end. The last attempt has no machines any more."""
    last = record.last
    if record.cancelled and last.outcome != SUCCEEDED:
        return replace(record, ended=_stamp(now), outcome=CANCELLED, reason=record.cancelled)
    if may_go_on(record):
        return plan_attempt(record, zone_after(record), now)
    tried = ", ".join(dict.fromkeys(attempt.zone for attempt in record.attempts))
    reason = f"{last.reason} (tried {tried})" if last.outcome in (NO_CAPACITY, EXPIRED) else last.reason
    outcome = SUCCEEDED if last.outcome == SUCCEEDED else FAILED
    return replace(record, ended=_stamp(now), outcome=outcome, reason=reason)


def may_go_on(record: Record) -> bool:
    if record.standing is not None:
        return record.last.outcome in (LOST, NO_CAPACITY, REFUSED)
    match record.last.outcome:
        case "failed":
            cannot_run = any(code in exit_codes.CANNOT_RUN for code in record.last.exit_codes.values())
            return not cannot_run and record.count(FAILED) <= record.body["retries"]
        case "lost":
            return record.count(LOST) <= record.body["lost_retries"]
        case "no-capacity" | "expired":
            return len({each.zone for each in _round(record)}) < len(record.body["zones"])
        case _:
            return False


def _round(record: Record) -> list[Attempt]:
    """Return the attempts since the job last had machines, in which each zone is tried once."""
    found: list[Attempt] = []
    for attempt in reversed(record.attempts):
        if attempt.outcome not in (NO_CAPACITY, EXPIRED):
            break
        found.append(attempt)
    return found


def zone_after(record: Record) -> str:
    zones: list[str] = list(record.body["zones"])
    last = record.last
    if last.outcome == FAILED or last.zone not in zones:
        return last.zone if last.zone in zones else zones[0]
    return zones[(zones.index(last.zone) + 1) % len(zones)]


def plan_attempt(record: Record, zone: str, now: datetime) -> Record:
    number = record.last.number + 1
    name = labels.attempt_name(record.name, number, record.body.get(labels.PREFIX, ""))
    attempt = Attempt(number=number, zone=zone, name=name, planned=_stamp(now))
    before = record.attempts if record.standing is None else record.attempts[1 - REMEMBERED :]
    return replace(record, attempts=(*before, attempt))


def _over(record: Record, now: datetime) -> str:
    """Return why a declared queue requests no more TPUs: its time is over, or it has waited its longest. "": it may."""
    until, valid_s = (record.standing or {}).get("until"), record.body["machine"].get("valid_s")
    if until and now >= datetime.fromisoformat(until):
        return f"it was wanted until {until}"
    waited = record.last.started is None and record.last.made is not None
    if valid_s and waited and _since(record.last.made, now) >= valid_s:
        return f"it has waited for {valid_s} s"
    return ""


def _pauses(record: Record, now: datetime) -> bool:
    """Return whether a declared queue waits: a zone that refuses at once would get requests without end."""
    if record.standing is None or len(record.attempts) < 2:
        return False
    before = record.attempts[-2]
    return before.outcome in (NO_CAPACITY, REFUSED) and _since(before.ended, now) < AGAIN_S


def _stamp(now: datetime) -> str:
    return now.astimezone(UTC).isoformat(timespec="milliseconds")


def _since(moment: str | None, now: datetime) -> float:
    return (now - datetime.fromisoformat(moment)) / timedelta(seconds=1) if moment else 0.0
