"""The owner of a job, by its labels."""

from collections.abc import Mapping
from typing import Any

OWNERS = ("owner", "team")
"""Labels that name an owner; the first that a job has counts. Labels that a target's platform adds count too."""


def owner_of(labels: Mapping[str, Any]) -> str | None:
    return next((str(labels[name]) for name in OWNERS if labels.get(name)), None)
