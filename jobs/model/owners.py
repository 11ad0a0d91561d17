"""Whose a job is, by its labels."""

from collections.abc import Mapping
from typing import Any

OWNERS = ("owner", "team")
"""Labels that say so; the first counts that a job has. A target's own, where its platform adds them, count too."""


def owner_of(labels: Mapping[str, Any]) -> str | None:
    """None: no label says it."""
    return next((str(labels[name]) for name in OWNERS if labels.get(name)), None)
