"""Record of a job on machines of its own: the request, and every attempt to run it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from accel.diagnostics.errors import CloudSilent

T = TypeVar("T")

PLANNED, MADE, ENDED, GONE = "planned", "made", "ended", "gone"
"""States of an attempt. planned: nothing was sent; made: its machines may exist; ended: its outcome is decided, and its
machines must be removed; gone: its machines are removed."""

SUCCEEDED, FAILED, LOST, NO_CAPACITY, EXPIRED, REFUSED, CANCELLED = (
    *("succeeded", "failed", "lost", "no-capacity", "expired", "refused", "cancelled"),
)
"""Outcomes. lost: the cloud preempted or removed a machine; expired: the request waited in its zone for the longest
time that it may."""


@dataclass(frozen=True)
class Attempt:
    """Request for machines in one zone. Times are ISO, in UTC."""

    number: int
    zone: str
    name: str
    planned: str
    state: str = PLANNED
    made: str | None = None
    started: str | None = None
    """Time at which it was first seen to run."""
    ended: str | None = None
    outcome: str = ""
    reason: str = ""
    exit_codes: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    """Exit codes by host, for hosts that reported one."""


@dataclass(frozen=True)
class Record:
    """Record of a job. `body` is that of its request."""

    kind: str
    target: str
    name: str
    job_name: str
    key: str
    spec_hash: str
    body: Mapping[str, Any]
    created: str
    attempts: tuple[Attempt, ...]
    cancelled: str | None = None
    """Reason for its cancellation."""
    ended: str | None = None
    outcome: str = ""
    reason: str = ""

    @property
    def last(self) -> Attempt:
        """Last attempt, which is the one that counts. There is always one."""
        return self.attempts[-1]

    @property
    def hosts(self) -> int:
        """Number of machines that run the command at once."""
        return int(self.body["hosts"])

    @property
    def standing(self) -> Mapping[str, Any] | None:
        """Settings of a declared queue, which has no command and no end: until when it requests TPUs. None: a job."""
        return self.body.get("standing")

    def with_last(self, **changes: Any) -> "Record":
        return replace(self, attempts=(*self.attempts[:-1], replace(self.last, **changes)))

    def count(self, *outcomes: str) -> int:
        return sum(attempt.outcome in outcomes for attempt in self.attempts)


@dataclass(frozen=True)
class Result:
    """Result of a host, from result-<host>.json."""

    host: int
    exit_code: int | None
    reason: str | None
    started: str | None
    stopped: str | None
    lines: int | None = None
    """Bound on the numbers of the lines that it has written to Cloud Logging: all are below it."""


def was_never_made(record: Record) -> bool:
    return all(attempt.outcome == REFUSED and attempt.made is None for attempt in record.attempts)


def as_json(record: Record) -> dict[str, Any]:
    return asdict(record)


def of_json(value: Mapping[str, Any], where: str) -> Record:
    """Ignore fields of newer versions. Raise CloudSilent for an invalid record."""
    try:
        known: dict[str, Any] = {name: value[name] for name in Record.__dataclass_fields__ if name in value}
        names = Attempt.__dataclass_fields__
        attempts = [Attempt(**{k: v for k, v in each.items() if k in names}) for each in known["attempts"]]
        known["attempts"] = tuple(attempts)
        made = Record(**known)
        if not made.attempts:
            raise ValueError("it has no attempt")
        return made
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CloudSilent(f"{where}: is no record of a job: {error}") from error


def result_of(value: Mapping[str, Any], host: int) -> Result:
    """Treat a value that is missing, or of another type, as unknown: any job may write results."""

    def own(name: str, kind: type[T]) -> T | None:
        found = value.get(name)
        return found if isinstance(found, kind) and not isinstance(found, bool) else None

    return Result(
        host=host,
        exit_code=own("exit_code", int),
        reason=own("reason", str),
        started=own("started", str),
        stopped=own("stopped", str),
        lines=own("lines", int),
    )
