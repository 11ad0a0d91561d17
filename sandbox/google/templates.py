"""Instance templates, of a project and of a region: the properties that instances and groups are made of."""

import copy
from typing import Any

from . import instance_body as body
from .compute import compute_collection, refuse_used
from .errors import Refused
from .images import resolved
from .world import Call, Json

_new: Any = compute_collection("instanceTemplates", "InstanceTemplate").made


def _made(call: Call, key: str, item: Json) -> None:
    _new(call, key, item)
    properties: Json = copy.deepcopy(item.get("properties") or {})
    kind = properties.get("machineType", "")
    if not kind:
        raise Refused(400, "Required field 'resource.properties.machineType' not specified", "required")
    if "/" in kind:
        # A template takes bare names; the words are those of a name that does not match, from memory.
        said = f"Invalid value for field 'resource.properties.machineType': '{kind}'. Must be a match of regex"
        raise Refused(400, f"{said} '(?:[a-z](?:[-a-z0-9]{{0,61}}[a-z0-9])?)'", "invalid")
    at = "resource.properties"
    body.scheduling(properties, body.has_accelerators(kind, properties.get("guestAccelerators") or []), at)
    body.interfaces(call, properties, call.path.get("region", ""), at, addresses=False)
    body.accounts(call, properties)
    for index, disk in enumerate(properties.get("disks", [])):
        disk |= {"kind": "compute#attachedDisk", "index": index, "boot": bool(disk.get("boot"))}
        disk.setdefault("mode", "READ_WRITE")
        disk.setdefault("type", "PERSISTENT")
        if source := disk.get("initializeParams", {}).get("sourceImage"):
            resolved(call, source)
    for name in ("metadata", "tags"):
        if name in properties:
            properties[name]["fingerprint"] = "template"
    properties.setdefault("canIpForward", False)
    item["properties"] = properties


COLLECTIONS = (
    compute_collection("instanceTemplates", "InstanceTemplate", made=_made, leaving=refuse_used),
    compute_collection("regionInstanceTemplates", "InstanceTemplate", made=_made, leaving=refuse_used),
)
