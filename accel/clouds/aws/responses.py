"""Accessors for AWS responses."""

from collections.abc import Mapping
from typing import Any


def structure(answer: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a structure of a response; empty if it is left out."""
    return answer.get(name) or {}


def structures(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a list of structures of a response; empty if it is left out."""
    return answer.get(name) or []
