"""The attempts of a job on machines of its own, from its record."""

from datetime import UTC, datetime

from ...backend import Attempt as Tried
from .record import LOST, Record
from .status import exit_code


def attempts(record: Record) -> list[Tried]:
    """Each request for machines. When a machine was found, which is before it was seen to run, is in no record."""
    return [
        Tried(
            number,
            created=_moment(each.made or each.planned),
            started=_moment(each.started),
            stopped=_moment(each.ended),
            exit_code=exit_code(each),
            reason=": ".join(part for part in (each.zone, each.outcome, each.reason) if part) or None,
            lost=each.outcome == LOST,
        )
        for number, each in enumerate(record.attempts, 1)
    ]


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None
