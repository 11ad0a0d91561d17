"""What `jobs explain` may name, and the page that lists it."""

import re
from collections.abc import Mapping
from typing import NamedTuple


class Cause(NamedTuple):
    """What it means, and a page that says so."""

    title: str
    source: str


class CauseRow(NamedTuple):
    """Words that name a cause, what they mean, and what to do."""

    pattern: re.Pattern[str]
    cause: str
    reason: str
    next_step: str


def cause_row(pattern: str, cause: str, reason: str, next_step: str) -> CauseRow:
    """Return the row whose pattern matches in capitals and small letters alike."""
    return CauseRow(re.compile(pattern, re.IGNORECASE), cause, reason, next_step)


THEN_RETRY = "then `accel-jobs retry REF`"


def table(causes: Mapping[str, Cause]) -> str:
    """The causes as a table in Markdown."""
    rows = "".join(f"| `{name}` | {cause.title} | <{cause.source}> |\n" for name, cause in causes.items())
    return f"| cause | what it means | source |\n| --- | --- | --- |\n{rows}"
