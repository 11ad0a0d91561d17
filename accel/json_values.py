"""Accessors for values of JSON that nobody has checked."""

import math
from collections.abc import Mapping
from typing import Any


def mapping(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def mappings(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, without what is none."""
    return [found for each in entries(value) if (found := mapping(each)) is not None]


def texts(value: Any) -> list[str]:
    return [each for each in entries(value) if isinstance(each, str)]


def number(value: Any) -> float | None:
    """Return None unless it is a finite number. 64-bit numbers are text in JSON."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        found = float(value)
    except (OverflowError, ValueError):
        return None
    return found if math.isfinite(found) else None


def object_at(value: Any, *names: str) -> dict[str, Any]:
    """Return the object that the names lead to, or the value itself without one. Return {} for what is none."""
    found: Any = value
    for name in names:
        found = object_at(found).get(name)
    return mapping(found) or {}


def objects_at(value: Mapping[str, Any] | None, name: str) -> list[dict[str, Any]]:
    return mappings((value or {}).get(name))
