"""Plain words for pydantic's errors: limits, the value if it may be shown, the nearest name, the first of many."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .redaction import MAY_BE_SECRET, redact

SHOWN_MAX = 60
_HIDDEN = ("env", "secrets", "labels", "command")
"""Fields whose values are never shown, since they often contain secrets."""

_PATTERNS = {
    r"^[A-Za-z0-9][A-Za-z0-9_-]*$": "must be letters, digits, - and _, beginning with a letter or a digit",
    r"^[a-z][a-z0-9-]*$": "must be small letters, digits and -, beginning with a letter",
    r"^/": "must be an absolute path, beginning with /",
}

MISSING = "is missing"


def _at_least(limits: Mapping[str, Any]) -> str:
    return "must not be empty" if limits["min_length"] == 1 else f"must have at least {limits['min_length']} entries"


_WORDS: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "missing": MISSING,
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "int_parsing_size": "must be an integer of at most 32 bits",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "string_unicode": "must be text that UTF-8 can hold",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "greater_than_equal": lambda limits: f"must be at least {limits['ge']}",
    "greater_than": lambda limits: f"must be above {limits['gt']}",
    "less_than_equal": lambda limits: f"must be at most {limits['le']}",
    "less_than": lambda limits: f"must be below {limits['lt']}",
    "literal_error": lambda limits: f"must be one of {limits['expected']}",
    "union_tag_invalid": lambda limits: f"must be one of {limits['expected_tags']}",
    "string_too_short": "must not be empty",
    "string_too_long": lambda limits: f"must have at most {limits['max_length']} characters",
    "too_short": _at_least,
    "too_long": lambda limits: f"must have at most {limits['max_length']} entries, has {limits['actual_length']}",
    "string_pattern_mismatch": lambda limits: _PATTERNS.get(limits["pattern"], f"must match {limits['pattern']}"),
    "value_error": lambda limits: str(limits["error"]),
}

_OWN_VALUE = ("missing", "too_short", "too_long", "string_unicode")
"""Errors whose words describe the value already."""


def describe_fault(kind: str, limits: Mapping[str, Any], path: Sequence[str | int], value: Any) -> str:
    """Return the words, including `, is <value>`."""
    known = _WORDS.get(kind, f"does not fit ({kind})")
    words = known if isinstance(known, str) else known(limits)
    if kind in _OWN_VALUE or (kind == "value_error" and not words.startswith("must be")) or "YAML read" in words:
        return words
    meant = amount(str(path[-1]) if path else "", value) if kind.startswith("int_") else ""
    return f"{words}, is {display(value, hidden=any(part in _HIDDEN for part in path))}{meant}"


_AMOUNT = re.compile(r"(\d{1,12}) ?([KMGT])i?[Bb]?", re.ASCII)
_UNITS = "KMGT"


def amount(field: str, value: Any) -> str:
    """Return `; write 4096 for 4 GiB` for `4Gi` in a field of MiB; empty if it is not an amount. An ambiguous unit is
    read as the binary one, which is larger."""
    unit, given = field.rpartition("_")[2], _AMOUNT.fullmatch(str(value))
    if unit not in ("mib", "gib") or not given:
        return ""
    steps = _UNITS.index(given[2]) - _UNITS.index(unit[0].upper())
    whole, rest = divmod(int(given[1]) * 1024 ** max(steps, 0), 1024 ** max(-steps, 0))
    return "" if rest or not whole else f"; write {whole} for {given[1]} {given[2]}iB"


def display(value: Any, hidden: bool = False) -> str:
    """Return the value as a message may show it: short, without contents of a collection or possible secrets."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int | float):
        return "a number" if hidden else _short(f"{value:.17g}" if isinstance(value, float) else _digits(value))
    if hidden or MAY_BE_SECRET.search(str(value)):
        return "text"
    return _short(repr(str(value)))


def did_you_mean(name: str, known: Sequence[str], most: int | None = None) -> str:
    """Return `; did you mean a or b?`, or the known names if there are at most `most`, or an empty string."""
    # Imported here, since the catalogue is needed only for a wrong name.
    from accel.catalog.nearest import nearest

    # A name may be a megabyte of garbage, and the distance takes the product of the lengths.
    near = nearest(name[:SHOWN_MAX], known)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; known: {', '.join(known)}" if known and (most is None or len(known) <= most) else ""


def first_of(items: Sequence[str], most: int) -> str:
    """Return at most so many items, and the number of the others: `a, b and 3 more`."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")


def printable_name(name: str) -> str:
    """Return a user's name, redacted, on one line and shortened."""
    return _short(redact(name if name.isprintable() and name else repr(name)))


def _digits(value: int) -> str:
    return str(value) if abs(value) < 10**SHOWN_MAX else "a number of many digits"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 3]}..."
