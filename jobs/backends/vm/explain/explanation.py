"""How a cause is put into an explanation."""

from collections.abc import Iterable

from ...base import Explanation
from ...causes import CauseRow
from .table import CAUSES

WIDTH = 400


def because(cause: str, reason: str, evidence: Iterable[str], next_step: str) -> Explanation:
    """With its evidence cut to lines that can be read."""
    assert cause in CAUSES, cause
    return Explanation(cause, reason, tuple(cut(line) for line in evidence if line), next_step)


def by(rows: Iterable[CauseRow], text: str, evidence: Iterable[str] = ()) -> Explanation | None:
    """The first row whose words are in the text."""
    for row in rows:
        if row.pattern.search(text):
            return because(row.cause, row.reason, (text, *evidence), row.next_step)
    return None


def cut(text: str) -> str:
    """On one line, not too long."""
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def span(seconds: float) -> str:
    """A time in words: `45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 120:
        return f"{int(seconds)} s"
    minutes = int(seconds // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
