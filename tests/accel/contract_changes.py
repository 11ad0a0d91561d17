"""What changes between two versions of the contract's schema."""

from collections.abc import Mapping
from typing import Any, cast


def version(of: Mapping[str, Any]) -> tuple[int, int]:
    major, _, minor = str(of["$id"]).rpartition(":")[2].partition(".")
    return int(major), int(minor)


def fields(of: Any, here: str = "") -> dict[str, Any]:
    """Return the type of every field by path, without descriptions, which may change."""
    found: dict[str, Any] = {}
    if isinstance(of, dict):
        given = cast("dict[str, Any]", of)
        for name, inner in cast("dict[str, Any]", given.get("properties", {})).items():
            found[f"{here}.{name}"] = {
                key: value for key, value in inner.items() if key not in ("description", "title", "default")
            }
        for name, inner in given.items():
            if name != "properties":
                found |= fields(inner, f"{here}/{name}")
    return found


def required_fields(of: Any, here: str = "") -> set[str]:
    found: set[str] = set()
    if isinstance(of, dict):
        given = cast("dict[str, Any]", of)
        found |= {f"{here}.{name}" for name in given.get("required", ())}
        for name, inner in given.items():
            if name != "properties":
                found |= required_fields(inner, f"{here}/{name}")
    return found


def breaking_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return one line for each change that breaks readers; none if the contract only grew."""
    old, new = fields(before), fields(now)
    lines = [f"{path}: is gone" for path in old if path not in new]
    lines += [f"{path}: is of another type" for path in old if path in new and _narrower(old[path], new[path])]
    demanded = required_fields(now) - required_fields(before)
    lines += [f"{path}: was not demanded before" for path in sorted(demanded) if path in old]
    objects = {path.rpartition(".")[0] for path in old}
    return lines + [
        f"{path}: is new, and demanded of stacks that do not have it"
        for path in sorted(demanded)
        if path not in old and path.rpartition(".")[0] in objects
    ]


def _narrower(old: Any, new: Any) -> bool:
    """Return whether a type has changed other than by added union members or enum values."""
    if old == new:
        return False
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return True
    before, now = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
    grown = {"anyOf", "oneOf", "enum"}
    same = all(before.get(key) == now.get(key) for key in (before.keys() | now.keys()) - grown - {"discriminator"})
    return not same or any(value not in now.get(key, ()) for key in grown for value in before.get(key, ()))
