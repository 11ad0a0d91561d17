"""Findings of other tools, read from JSON: a policy pack's, and those of `stacks drift`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel.diagnostics.errors import BadInput, NotFound
from accel.json_values import entries, mapping, object_at

from .plain import message_line, sanitize

LISTS = ("findings", "violations", "drift", "results", "diagnostics", "rows")
"""Keys under which a document that is no list itself may have the list."""
ADVISORY, MANDATORY = "advisory", "mandatory"


def policy(path: Path) -> list[dict[str, str]]:
    """Raise NotFound and BadInput."""
    return [
        {
            "rule": _first(each, "rule", "id", "policyName", "policy"),
            "level": MANDATORY if _first(each, "level", "severity", "enforcementLevel") == MANDATORY else ADVISORY,
            "resource": _first(each, "resource", "name", "urn").rpartition("::")[2],
            "text": message_line(_first(each, "text", "message", "description")),
        }
        for each in _findings(path)
    ]


def drift(path: Path) -> list[dict[str, str]]:
    """Raise NotFound and BadInput."""
    return [
        {
            "resource": sanitize(_first(each, "resource", "name", "what", "urn").rpartition("::")[2]),
            "weight": _first(each, "weight") or "changed",
            "text": message_line(_first(each, "text", "message", "why", "reason", "what")),
        }
        for each in _findings(path)
    ]


def _findings(path: Path) -> list[Mapping[str, Any]]:
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: is no JSON: {error}") from None
    inner = object_at(document)
    listed = next((inner[key] for key in LISTS if key in inner), document)
    if mapping(listed) is not None or not isinstance(listed, list):
        raise BadInput(f"{path}: has no list of findings", f"a list, or an object with one of {', '.join(LISTS)}")
    return [found for each in entries(document if listed is document else listed) if (found := mapping(each))]


def _first(found: Mapping[str, Any], *names: str) -> str:
    return str(next((found[name] for name in names if found.get(name)), ""))
