"""Documents of Firestore: reads, writes under preconditions, and queries. No transactions: a commit is one of its own.
Structured queries have comparisons, AND and OR, orders, offset and limit; anything else is refused. Source:
https://cloud.google.com/firestore/docs/reference/rest/v1/StructuredQuery"""

import copy
import secrets
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from ..errors import ApiError
from ..log_filter import nanoseconds
from ..world import Call, Collection, Json, by_id
from .databases import missing

_DOCUMENTS = "firestore.projects.databases.documents"
_PAGE = 20
"""Page size of lists that name none. Source:
https://cloud.google.com/firestore/docs/reference/rest/v1/projects.databases.documents/list"""


def _time(us: int) -> str:
    return f"{datetime.fromtimestamp(us // 10**6, UTC):%Y-%m-%dT%H:%M:%S}.{us % 10**6:06d}Z"


def _us(text: str) -> int:
    """Return the microseconds of a time. Raises ApiError for text that is no time."""
    found = nanoseconds(text)
    if found is None:
        raise ApiError(400, f"Invalid value at 'current_document.update_time' (google.protobuf.Timestamp), \"{text}\"")
    return found // 1000


def _key(call: Call) -> str:
    key = unquote(call.key)
    if call.find("/".join(key.split("/")[:4])) is None:
        raise missing(key)
    return key


def _condition(call: Call, given: Json, key: str, now: Json | None) -> None:
    """Check a precondition. Wordings: https://github.com/firebase/firebase-js-sdk/issues/5549 and issues/5871 (versions
    are microseconds); https://github.com/search?q="No+document+to+update". The answer to an updateTime of a missing
    document was not found: here its version is 0."""
    if given.get("exists") is False and now is not None:
        raise ApiError(409, f"Document already exists: {key}")
    if given.get("exists") is True and now is None:
        raise ApiError(404, f"No document to update: {key}")
    if "updateTime" in given:
        stored, wanted = _us(now["updateTime"]) if now else 0, _us(given["updateTime"])
        if stored != wanted:
            said = f"the stored version ({stored}) does not match the required base version ({wanted})"
            raise ApiError(400, said, status="FAILED_PRECONDITION")


def _asked(call: Call) -> Json:
    found: Json = {}
    if exists := call.query.get("currentDocument.exists"):
        found["exists"] = exists == "true"
    if moment := call.query.get("currentDocument.updateTime"):
        found["updateTime"] = moment
    return found


def _written(key: str, now: Json | None, fields: Json, mask: Iterable[str] | None, us: int) -> Json:
    """Return a document as it is after a write. A write without effect keeps its updateTime."""
    made = copy.deepcopy(fields) if mask is None else copy.deepcopy((now or {}).get("fields", {}))
    for path in mask or ():
        _put(made, path.split("."), _get(fields, path.split(".")))
    if now is not None and made == now.get("fields", {}):
        return now
    moment = _time(us)
    return {"name": key, "fields": made, "createTime": (now or {}).get("createTime", moment), "updateTime": moment}


def _get(fields: Json, path: list[str]) -> Any:
    found: Any = fields.get(path[0])
    return _get(found.get("mapValue", {}).get("fields", {}), path[1:]) if found and path[1:] else found


def _put(fields: Json, path: list[str], value: Any) -> None:
    if path[1:]:
        below = fields.setdefault(path[0], {"mapValue": {"fields": {}}})
        _put(below.setdefault("mapValue", {}).setdefault("fields", {}), path[1:], value)
    elif value is None:
        fields.pop(path[0], None)
    else:
        fields[path[0]] = value


def _checked(fields: Json, at: str = "fields") -> Json:
    """Check that each value has one type, and return them with whole numbers as text. Raises ApiError."""
    for name, value in fields.items():
        if len(value) != 1:
            raise ApiError(400, f"Invalid value at '{at}[{name}]' (oneof), a value has one type")
        if "integerValue" in value:
            value["integerValue"] = str(value["integerValue"])
        if "timestampValue" in value:
            value["timestampValue"] = _time(_us(value["timestampValue"]))
        if "mapValue" in value:
            _checked(value["mapValue"].get("fields", {}), f"{at}[{name}]")
    return fields


def _masked(item: Json, mask: str | None) -> Json:
    if not mask:
        return item
    fields: Json = {}
    for path in mask.split(","):
        if (value := _get(item.get("fields", {}), path.split("."))) is not None:
            _put(fields, path.split("."), value)
    return {**item, "fields": fields}


def _create(call: Call, collection: Collection) -> Json:
    key = f"{_key(call)}/{call.query.get('documentId') or secrets.token_hex(10)}"
    now = call.find(key)
    _condition(call, {"exists": False}, key, now)
    fields = _checked(copy.deepcopy(call.body.get("fields", {})))
    item = _written(key, None, fields, None, call.world.moment())
    call.world.items[f"firestore/{key}"] = item
    return _masked(item, call.query.get("mask.fieldPaths"))


def _read(call: Call, collection: Collection) -> Json:
    key = _key(call)
    if (item := call.find(key)) is None:
        raise ApiError(404, f'Document "{key}" not found.')
    return _masked(item, call.query.get("mask.fieldPaths"))


def _patch(call: Call, collection: Collection) -> Json:
    key = _key(call)
    now = call.find(key)
    _condition(call, _asked(call), key, now)
    mask = call.query.get("updateMask.fieldPaths")
    fields = _checked(copy.deepcopy(call.body.get("fields", {})))
    item = _written(key, now, fields, mask.split(",") if mask else None, call.world.moment())
    call.world.items[f"firestore/{key}"] = item
    return _masked(item, call.query.get("mask.fieldPaths"))


def _delete(call: Call, collection: Collection) -> Json:
    """Delete a document. A missing one is no error, unless it has to exist."""
    key = _key(call)
    _condition(call, _asked(call), key, call.find(key))
    call.world.items.pop(f"firestore/{key}", None)
    return {}


def _commit(call: Call, collection: Collection) -> Json:
    """Carry out all writes or none, one after the other."""
    _key(call)
    if call.body.get("transaction"):
        raise ApiError(501, "the sandbox does not serve transactions")
    us, world = call.world.moment(), call.world
    staged: dict[str, Json | None] = {}
    results: list[Json] = []
    for write in call.body.get("writes", []):
        if "transform" in write:
            raise ApiError(501, "the sandbox does not serve `transform`; updateTransforms are served")
        key = by_id(write["delete"] if "delete" in write else write.get("update", {}).get("name", ""))
        if not key.startswith(f"{call.key}/documents/"):
            raise ApiError(400, f'Document name "{key}" is not below {call.key}/documents/.')
        now = staged[key] if key in staged else call.find(key)
        _condition(call, write.get("currentDocument", {}), key, now)
        if "delete" in write:
            staged[key] = None
            results.append({})
            continue
        mask = write["updateMask"].get("fieldPaths", []) if "updateMask" in write else None
        item = _written(key, now, _checked(copy.deepcopy(write["update"].get("fields", {}))), mask, us)
        item, made = _transformed(item, now, write.get("updateTransforms", []), us)
        staged[key] = item
        results.append({"updateTime": item["updateTime"], **({"transformResults": made} if made else {})})
    for key, item in staged.items():
        if item is None:
            world.items.pop(f"firestore/{key}", None)
        else:
            world.items[f"firestore/{key}"] = item
    return {"writeResults": results, "commitTime": _time(us)}


def _transformed(item: Json, now: Json | None, rows: list[Json], us: int) -> tuple[Json, list[Json]]:
    if not rows:
        return item, []
    made = {**copy.deepcopy(item), "updateTime": _time(us)}
    values: list[Json] = []
    for row in rows:
        path = row["fieldPath"].split(".")
        if row.get("setToServerValue") == "REQUEST_TIME":
            values.append({"timestampValue": _time(us // 1000 * 1000)})
        elif "increment" in row and "integerValue" in row["increment"]:
            old = (_get(made["fields"], path) or {}).get("integerValue", "0")
            values.append({"integerValue": str(int(old) + int(row["increment"]["integerValue"]))})
        else:
            raise ApiError(501, f"the sandbox does not serve the transformation {row}")
        _put(made["fields"], path, values[-1])
    return made, values


def _listed(call: Call, collection: Collection) -> Json:
    key = _key(call)
    found = [item for item in call.world.below("firestore", key) if "fields" in item]
    size, start = int(call.query.get("pageSize") or _PAGE), int(call.query.get("pageToken") or 0)
    shown = [_masked(item, call.query.get("mask.fieldPaths")) for item in found[start : start + size]]
    answer: Json = {"documents": shown} if shown else {}
    return answer | ({"nextPageToken": str(start + size)} if start + size < len(found) else {})


def _query(call: Call, collection: Collection) -> list[Json]:
    """Run a query. An empty result is one answer that has the time only."""
    key = _key(call)
    parent = key if "/documents" in key else f"{key}/documents"
    query: Json = call.body.get("structuredQuery", {})
    rows: list[Json] = []
    for source in query.get("from", []):
        inner = f"{parent}/{source['collectionId']}"
        rows += [item for item in call.world.below("firestore", inner) if "fields" in item]
    moment = _time(call.world.moment())
    found = run_query(query, rows)
    return [{"document": item, "readTime": moment} for item in found] or [{"readTime": moment}]


OWN: dict[str, Callable[[Call, Collection], Any]] = {
    f"{_DOCUMENTS}.createDocument": _create,
    f"{_DOCUMENTS}.get": _read,
    f"{_DOCUMENTS}.patch": _patch,
    f"{_DOCUMENTS}.delete": _delete,
    f"{_DOCUMENTS}.commit": _commit,
    f"{_DOCUMENTS}.list": _listed,
    f"{_DOCUMENTS}.listDocuments": _listed,
    f"{_DOCUMENTS}.runQuery": _query,
}


_TYPES = ("nullValue", "booleanValue", "integerValue", "timestampValue", "stringValue", "bytesValue", "referenceValue")
"""Types in the order of their values; doubles are ordered among whole numbers. Source:
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


def _refused(what: Any) -> ApiError:
    return ApiError(501, f"the sandbox does not serve queries with {what}")


def _plain(value: Json) -> tuple[int, Any]:
    """Return a value that can be compared: the rank of its type, and the value itself."""
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
    """Return whether a filter holds. It never does for a document without the field."""
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


def run_query(query: Json, rows: list[Json]) -> list[Json]:
    """Raise ApiError for a part of a query that is not served."""
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
