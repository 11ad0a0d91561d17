"""Names of jobs, and the names that were probably meant."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from accel.diagnostics import messages

from ..model.job import NAME_MAX

if TYPE_CHECKING:
    from .fields import RequestFields

KNOWN_MAX = 10
"""Names that a message lists."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean a or b?`; where none is near, what is known, if it is little."""
    return _suggestion(name[: messages.SHOWN_MAX], tuple(known))


@lru_cache(maxsize=64)
def _suggestion(name: str, known: tuple[str, ...]) -> str:
    return messages.did_you_mean(name, known, KNOWN_MAX) if name else ""


def job_name(given: "RequestFields", path: str) -> str:
    """A name that a job file takes."""
    name = given.text(path) or "imported"
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:NAME_MAX] or "imported"
    if path in given.names:
        given.keep(path, "name")
    if plain != name or not given.has(path):
        why = f"a job's name has at most {NAME_MAX} letters, digits, - and _" if path in given.names else "is missing"
        given.report.changed(given.name(path), plain, why)
    return plain
