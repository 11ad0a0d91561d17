"""Read answers of AWS."""

from collections.abc import Mapping
from typing import Any


def structure(answer: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a structure of an answer; empty where it is left out."""
    return answer.get(name) or {}


def structures(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a list of structures of an answer; empty where it is left out."""
    return answer.get(name) or []
