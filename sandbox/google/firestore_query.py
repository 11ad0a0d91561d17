"""Structured queries of Firestore: comparisons, AND and OR, orders, offset and limit; anything else is refused.

Source: https://cloud.google.com/firestore/docs/reference/rest/v1/StructuredQuery
"""

from collections.abc import Callable
from typing import Any

from .errors import Refused
from .log_filter import nanoseconds
from .world import Json

_TYPES = ("nullValue", "booleanValue", "integerValue", "timestampValue", "stringValue", "bytesValue", "referenceValue")
"""In the order in which values of different types stand; doubles stand among whole numbers. Source:
https://cloud.google.com/firestore/docs/concepts/data-types#value_type_ordering"""
_READ: dict[str, Callable[[Any], Any]] = {
    "integerValue": int,
    "doubleValue": float,
    "timestampValue": nanoseconds,
}
_KNOWN = {"from", "where", "orderBy", "limit", "offset", "select"}
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "LESS_THAN": lambda a, b: a[0] == b[0] and a < b,
    "LESS_THAN_OR_EQUAL": lambda a, b: a[0] == b[0] and a <= b,
    "GREATER_THAN": lambda a, b: a[0] == b[0] and a > b,
    "GREATER_THAN_OR_EQUAL": lambda a, b: a[0] == b[0] and a >= b,
    "EQUAL": lambda a, b: a == b,
    "NOT_EQUAL": lambda a, b: a != b,
}


def _refused(what: Any) -> Refused:
    return Refused(501, f"the sandbox does not serve queries with {what}")


def _plain(value: Json) -> tuple[int, Any]:
    """A value that can be compared: the rank of its type, and itself."""
    ((kind, raw),) = value.items()
    named = "integerValue" if kind == "doubleValue" else kind
    if named not in _TYPES:
        raise _refused(kind)
    return _TYPES.index(named), 0 if kind == "nullValue" else _READ.get(kind, lambda same: same)(raw)


def _value(item: Json, path: str) -> tuple[int, Any] | None:
    if path == "__name__":
        return _plain({"referenceValue": item["name"]})
    found: Any = {"mapValue": {"fields": item["fields"]}}
    for part in path.split("."):
        found = found.get("mapValue", {}).get("fields", {}).get(part) if found else None
    return _plain(found) if found else None


def _holds(item: Json, where: Json) -> bool:
    """A document without the field is in no result."""
    if composite := where.get("compositeFilter"):
        each = [_holds(item, part) for part in composite["filters"]]
        return any(each) if composite.get("op") == "OR" else all(each)
    if "fieldFilter" not in where:
        raise _refused(", ".join(where))
    given = where["fieldFilter"]
    found = _value(item, given["field"]["fieldPath"])
    if given["op"] == "IN":
        return found in [_plain(value) for value in given["value"]["arrayValue"].get("values", [])]
    if given["op"] not in _COMPARED:
        raise _refused(given["op"])
    return found is not None and _COMPARED[given["op"]](found, _plain(given["value"]))


def found_by(query: Json, rows: list[Json]) -> list[Json]:
    """Raises Refused."""
    if unknown := query.keys() - _KNOWN:
        raise _refused(", ".join(sorted(unknown)))
    kept = [item for item in rows if not query.get("where") or _holds(item, query["where"])]
    kept.sort(key=lambda item: item["name"])
    for order in reversed(query.get("orderBy", [])):
        path = order["field"]["fieldPath"]
        valued = [(value, item) for item in kept if (value := _value(item, path)) is not None]
        valued.sort(key=lambda pair: pair[0], reverse=order.get("direction") == "DESCENDING")
        kept = [item for _, item in valued]
    start = int(query.get("offset") or 0)
    kept = kept[start : start + int(query["limit"])] if "limit" in query else kept[start:]
    if "select" not in query:
        return kept
    paths = [field["fieldPath"] for field in query["select"].get("fields", [])]
    return [
        {**item, "fields": {name: item["fields"][name] for name in paths if name in item["fields"]}} for item in kept
    ]
