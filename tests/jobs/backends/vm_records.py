"""Records of jobs on machines of their own."""

from dataclasses import replace
from typing import Any

from jobs.backends.base import Request
from jobs.backends.vm.backend import new_record
from jobs.backends.vm.record import Attempt, Record


def make_record(request: Request, *, planned: str = "2026-11-22T00:00:00+00:00", **attempt: Any) -> Record:
    """The record of a request, with one attempt of known time."""
    record = new_record(request)
    first: Attempt = replace(record.last, planned=planned, **attempt)
    return replace(record, attempts=(first,))
