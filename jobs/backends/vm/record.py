"""What is kept of a job on machines of its own: the request, and every attempt to run it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from accel.diagnostics.errors import CloudSilent

T = TypeVar("T")

PLANNED, MADE, ENDED, GONE = "planned", "made", "ended", "gone"
"""States of an attempt: nothing was sent; its machines may be there; it is decided, they have to go; they are gone."""

SUCCEEDED, FAILED, LOST, NO_CAPACITY, EXPIRED, REFUSED, CANCELLED = (
    *("succeeded", "failed", "lost", "no-capacity", "expired", "refused", "cancelled"),
)
"""Outcomes. lost: the cloud took a machine away; expired: it waited in its zone for as long as it might."""


@dataclass(frozen=True)
class Attempt:
    """One request for machines, in one zone. Times are ISO, in UTC."""

    number: int
    zone: str
    name: str
    planned: str
    state: str = PLANNED
    made: str | None = None
    started: str | None = None
    """First seen to run."""
    ended: str | None = None
    outcome: str = ""
    reason: str = ""
    exit_codes: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    """Of the hosts that told of one."""


@dataclass(frozen=True)
class Record:
    """A job. `body` is that of its request."""

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
    """Why it was asked to stop."""
    ended: str | None = None
    outcome: str = ""
    reason: str = ""

    @property
    def last(self) -> Attempt:
        """The attempt that counts: there is always one."""
        return self.attempts[-1]

    @property
    def hosts(self) -> int:
        """How many machines run the command at once."""
        return int(self.body["hosts"])

    @property
    def standing(self) -> Mapping[str, Any] | None:
        """Of a declared queue, which has no command and no end of its own: until when it asks. None: it is a job."""
        return self.body.get("standing")

    def with_last(self, **changes: Any) -> "Record":
        """The same with the last attempt changed."""
        return replace(self, attempts=(*self.attempts[:-1], replace(self.last, **changes)))

    def count(self, *outcomes: str) -> int:
        """How many attempts ended so."""
        return sum(attempt.outcome in outcomes for attempt in self.attempts)


@dataclass(frozen=True)
class Result:
    """What a host told of its part: of result-<host>.json."""

    host: int
    exit_code: int | None
    reason: str | None
    started: str | None
    stopped: str | None
    lines: int | None = None
    """How many lines it has written to Cloud Logging: their numbers are below it."""


def was_never_made(record: Record) -> bool:
    """Whether all that ever came of the job is that it was refused when it was asked for."""
    return all(attempt.outcome == REFUSED and attempt.made is None for attempt in record.attempts)


def as_json(record: Record) -> dict[str, Any]:
    """Plain JSON values."""
    return asdict(record)


def of_json(value: Mapping[str, Any], where: str) -> Record:
    """What as_json gave; fields that a newer version has are left out. Raises CloudSilent for what is no record."""
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
    """A host's own words; what is missing in them, or is of another type, is unknown: any job may write them."""

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
