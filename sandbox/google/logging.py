"""Cloud Logging v2: writes and lists of entries."""

import json
import re
from collections.abc import Callable
from typing import Any

from . import PROJECT, PROJECT_NUMBER
from .errors import ApiError
from .log_filter import SEVERITIES, nanoseconds, parse_filter
from .world import Call, Collection, Json, by_id, stamp

# https://docs.cloud.google.com/logging/quotas
_ENTRY, _REQUEST, _PAGE = 256 * 1024, 10_485_760, 1000
_LOG = re.compile(r"projects/([^/]+)/logs/[A-Za-z0-9_.%-]+")


def _write(call: Call, collection: Collection) -> Json:
    """Write all entries, or with partialSuccess those that are valid. A fault's `delay_s` is the time after which they
    can be read."""
    # Wording: https://github.com/search?q="Request+payload+size+exceeds+the+limit"; the size here is that of the JSON
    # without spaces, which may be less than the client sent.
    if len(json.dumps(call.body, separators=(",", ":"), ensure_ascii=False)) > _REQUEST:
        raise ApiError(400, f"Request payload size exceeds the limit: {_REQUEST} bytes.")
    entries: list[Json] = []
    wrong: dict[str, str] = {}
    received = stamp()
    for index, entry in enumerate(call.body.get("entries", [])):
        made, why = _entry(call, {**entry}, index, received)
        if why:
            wrong[str(index)] = why
        else:
            entries.append(made)
    if wrong and (not call.body.get("partialSuccess") or not entries):
        raise ApiError(400, next(iter(wrong.values())))  # where none is written, there are no details
    if not call.body.get("dryRun"):
        for entry in entries:
            call.world.logs.add(entry, call.plan.delay_s if call.plan else 0)
    if wrong:
        kind = "type.googleapis.com/google.logging.v2.WriteLogEntriesPartialErrors"
        errors = {index: {"code": 3, "message": why} for index, why in wrong.items()}
        raise ApiError(400, next(iter(wrong.values())), details=[{"@type": kind, "logEntryErrors": errors}])
    return {}


def _entry(call: Call, entry: Json, index: int, received: str) -> tuple[Json, str]:
    """Return an entry as it is stored, and what is wrong with it."""
    for name in ("logName", "resource"):
        if name not in entry and name in call.body:
            entry[name] = call.body[name]
    if labels := call.body.get("labels"):
        entry["labels"] = {**labels, **entry.get("labels", {})}
    log = _LOG.fullmatch(entry.get("logName", ""))
    if log is None:
        return {}, f"Log name '{entry.get('logName', '')}' is not projects/[PROJECT_ID]/logs/[LOG_ID]"
    if log[1] not in (PROJECT, PROJECT_NUMBER):
        raise ApiError(403, f"Permission 'logging.logEntries.create' denied on resource 'projects/{log[1]}'.")
    if not entry.get("resource", {}).get("type"):
        return {}, "A log entry has no monitored resource"
    if entry.get("severity", "DEFAULT") not in SEVERITIES:
        return {}, f"Unknown severity '{entry['severity']}'"
    size = len(json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode())
    if size > _ENTRY:  # wording: https://github.com/googleapis/nodejs-logging/issues/520
        return {}, f"Log entry with size {_shown(size)} exceeds maximum size of 256.0K"
    entry |= {"logName": by_id(entry["logName"]), "receiveTimestamp": received}
    entry.setdefault("timestamp", received)
    entry.setdefault("insertId", f"{call.world.number():x}.{index:04d}")
    ns = nanoseconds(entry["timestamp"])
    if ns is None:
        return {}, f"Invalid value at 'entries[{index}].timestamp', \"{entry['timestamp']}\""
    labels = entry["resource"].get("labels", {})
    entry["resource"] = {**entry["resource"], "labels": {"project_id": PROJECT, **labels}}
    return {**entry, "__ns": ns}, ""


def _shown(size: int) -> str:
    return f"{size / 1024:.1f}K" if size < 1024**2 else f"{size / 1024**2:.2f}M"


def _list(call: Call, collection: Collection) -> Json:
    names = call.body.get("resourceNames", []) + [f"projects/{each}" for each in call.body.get("projectIds", [])]
    if not names:
        raise ApiError(400, "Required field 'resource_names' not specified", "required")
    for name in names:
        if by_id(name).split("/")[:2] != ["projects", PROJECT]:
            raise ApiError(403, f"Permission 'logging.logEntries.list' denied on resource '{name}'.")
    order, size = call.body.get("orderBy") or "timestamp asc", int(call.body.get("pageSize") or 50)
    if order not in ("timestamp asc", "timestamp desc"):
        raise ApiError(400, f"Invalid order_by '{order}': it is 'timestamp asc' or 'timestamp desc'")
    if size < 0:
        raise ApiError(400, f"page_size {size} is negative")
    wanted = parse_filter(call.body.get("filter", ""))
    try:
        token = call.body.get("pageToken", "")
        found, more = call.world.logs.page(wanted, order.endswith("desc"), min(size, _PAGE), token)
    except ValueError:
        raise ApiError(400, "page_token is invalid") from None
    entries = [{name: value for name, value in entry.items() if name != "__ns"} for entry in found]
    return ({"entries": entries} if entries else {}) | ({"nextPageToken": more} if more else {})


COLLECTIONS = (Collection(id="logging.entries", schema="LogEntry"),)
OWN: dict[str, Callable[[Call, Collection], Any]] = {"logging.entries.write": _write, "logging.entries.list": _list}
