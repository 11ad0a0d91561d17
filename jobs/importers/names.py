"""Suggestions of the names that were probably meant."""

from collections.abc import Iterable
from functools import lru_cache

from accel.diagnostics import messages

KNOWN_MAX = 10
"""Maximum number of names that a message lists."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean a or b?`, or the known names if none is near and they are few."""
    return _suggestion(name[: messages.SHOWN_MAX], tuple(known))


@lru_cache(maxsize=64)
def _suggestion(name: str, known: tuple[str, ...]) -> str:
    return messages.did_you_mean(name, known, KNOWN_MAX) if name else ""
