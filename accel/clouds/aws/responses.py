"""Accessors for AWS responses."""

from collections.abc import Mapping
from typing import Any


def structure(answer: Mapping[str, Any], name: str) -> dict[str, Any]:
    return answer.get(name) or {}


def structures(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return answer.get(name) or []
