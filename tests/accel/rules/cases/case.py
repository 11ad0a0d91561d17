"""One rule: what breaks it, what its finding says, and a near miss that does not break it."""

from collections.abc import Callable
from dataclasses import dataclass

from accel.rules import Finding


@dataclass(frozen=True)
class Case:
    """`says`: parts of the message; `fix`: a part of the fix."""

    rule: str
    field: str
    says: tuple[str, ...]
    fix: str
    breaks: Callable[[], list[Finding]]
    near_miss: Callable[[], list[Finding]]
    replacement: object = None
