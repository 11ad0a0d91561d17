"""The attempts of a job on machines of its own, from its record."""

from ..base import Attempt as Tried
from .record import LOST, Record
from .status import exit_code, moment


def attempts(record: Record) -> list[Tried]:
    """Each request for machines. When a machine was found, which is before it was seen to run, is in no record."""
    return [
        Tried(
            number,
            created=moment(each.made or each.planned),
            started=moment(each.started),
            stopped=moment(each.ended),
            exit_code=exit_code(each),
            reason=": ".join(part for part in (each.zone, each.outcome, each.reason) if part) or None,
            lost=each.outcome == LOST,
        )
        for number, each in enumerate(record.attempts, 1)
    ]
