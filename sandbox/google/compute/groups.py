"""Managed instance groups of a zone or a region, their methods, and the templates of their instances.

A group has a number of instances of a template, and recreates lost ones. Its record of each instance is an item of the
API "managed", below the group's key. A group without a template is one of GKE's and creates nothing. Source:
https://cloud.google.com/compute/docs/instance-groups/working-with-managed-instances.
"""

import copy
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from .. import PROJECT_NUMBER, verbs
from ..errors import ApiError, Failure
from ..operations import begin
from ..world import Call, Collection, Json, World
from . import instance_body as body
from . import instance_life as life
from . import instances
from .api import compute_collection, refuse_if_in_use, zones
from .images import resolve_image
from .instance_body import accelerator_types, check_machine_type, existing


def _managed(call: Call) -> bool:
    return bool((call.find(call.key) or {}).get("instanceTemplate"))


def resize(call: Call, collection: Collection) -> Json:
    group, size = verbs.get(call, collection), int(call.query["size"])
    if not _managed(call):
        group["targetSize"] = size
    else:
        _sized(call, group, size)
    return begin(call, "compute", "resize", call.key, lambda: "")


def _sized(call: Call, group: Json, size: int) -> None:
    known = managed_rows(call.world, call.key)
    # Instances that are not created yet go first.
    going = sorted(known, key=lambda row: row["currentAction"] == "NONE")[: max(0, len(known) - size)]
    shrink(call, call.key, group, going)
    if size > len(known):
        group["targetSize"] = len(known)
        grow(call, call.key, group, size - len(known))


def create_instances(call: Call, collection: Collection) -> Json:
    """Create the named instances. The words for a name that is taken are ours: Google's are not known."""
    group = verbs.get(call, collection)
    names = [each["name"] for each in call.body.get("instances", [])]
    taken = {row["name"] for row in managed_rows(call.world, call.key)}
    if double := sorted(taken.intersection(names)) or sorted({name for name in names if names.count(name) > 1}):
        raise ApiError(400, f"Invalid value for field 'instances[].name': '{double[0]}'. It already exists.", "invalid")
    grow(call, call.key, group, len(names), names)
    return begin(call, "compute", "createInstances", call.key, lambda: "")


def _named(call: Call) -> list[Json]:
    known = {row["name"]: row for row in managed_rows(call.world, call.key)}
    asked = [each.rpartition("/")[2] for each in call.body.get("instances", [])]
    skips = call.body.get("skipInstancesOnValidationError")
    if (strange := [name for name in asked if name not in known]) and not skips:
        said = f"Invalid value for field 'instances': '{strange[0]}'. Instance is not a member of"
        raise ApiError(400, f"{said} '{call.key}'.", "invalid")
    return [known[name] for name in asked if name in known]


def delete_instances(call: Call, collection: Collection) -> Json:
    group, rows = verbs.get(call, collection), _named(call)
    shrink(call, call.key, group, rows)
    return begin(call, "compute", "deleteInstances", call.key, lambda: "", _all_gone(call, rows))


def _all_gone(call: Call, rows: list[Json]) -> Callable[[], bool]:
    return lambda: not any(row in managed_rows(call.world, call.key) for row in rows)


def abandon_instances(call: Call, collection: Collection) -> Json:
    group, rows = verbs.get(call, collection), _named(call)
    for row in rows:
        del call.world.items[f"managed/{call.key}/{row['name']}"]
    group["targetSize"] = max(0, int(group["targetSize"]) - len(rows))
    count_instances(call, call.key)
    return begin(call, "compute", "abandonInstances", call.key, lambda: "")


def recreate_instances(call: Call, collection: Collection) -> Json:
    verbs.get(call, collection)
    for row in _named(call):
        recreate(call, call.key, row)
    count_instances(call, call.key)
    return begin(call, "compute", "recreateInstances", call.key, lambda: "")


def list_instances(call: Call, collection: Collection) -> Json:
    verbs.get(call, collection)
    return {"managedInstances": [_shown(call, row) for row in managed_rows(call.world, call.key)]}


def _shown(call: Call, row: Json) -> Json:
    key = f"projects/{call.path['project']}/zones/{row['zone']}/instances/{row['name']}"
    item = call.find(key)
    made: Json = {"name": row["name"], "instance": f"{call.link}{key}", "currentAction": row["currentAction"]}
    made["targetStatus"] = row["targetStatus"]
    made |= {"id": item["id"], "instanceStatus": item["status"]} if item else {}
    made |= {"lastAttempt": row["lastAttempt"]} if row.get("lastAttempt") else {}
    return made | ({"version": {"instanceTemplate": row["template"]}} if "template" in row else {})


def errors(call: Call, collection: Collection) -> Json:
    verbs.get(call, collection)
    rows = [row for row in managed_rows(call.world, call.key) if row.get("lastAttempt")]
    return {
        "items": [
            {
                "error": {key: each[key] for key in ("code", "message")},
                "instanceActionDetails": {"action": row["currentAction"], "instance": _shown(call, row)["instance"]},
            }
            for row in rows
            for each in row["lastAttempt"]["errors"]["errors"]
        ]
    }


def set_template(call: Call, collection: Collection) -> Json:
    group = verbs.get(call, collection)
    group["versions"] = [{"instanceTemplate": call.body["instanceTemplate"]}]
    _new_template(call, group)
    return begin(call, "compute", "setInstanceTemplate", call.key, lambda: "")


def _new_template(call: Call, group: Json) -> None:
    """Set a new template. A group whose policy is proactive recreates all instances at once: it ignores the surge."""
    template = existing(call, group["versions"][0]["instanceTemplate"], "global/instanceTemplates")
    group["instanceTemplate"] = group["versions"][0]["instanceTemplate"] = template["selfLink"]
    if group.get("updatePolicy", {}).get("type") == "PROACTIVE":
        for row in managed_rows(call.world, call.key):
            if row.get("template") not in (None, template["selfLink"]):
                recreate(call, call.key, row)
    count_instances(call, call.key)


def patch(call: Call, collection: Collection) -> Json:
    """Change size, template or policy; a new template applies when the operation has ended."""
    group = verbs.get(call, collection)
    size, template = call.body.get("targetSize"), group.get("instanceTemplate")
    versions: list[Json] = call.body.get("versions") or []
    asked = call.body.get("instanceTemplate") or (versions[0].get("instanceTemplate") if versions else None)
    if asked:
        existing(call, asked, "global/instanceTemplates")

    def end() -> str:
        group.update({**verbs.merge_patch(group, call.body), "targetSize": group["targetSize"]})
        if asked and template:
            group["versions"] = versions or [{"instanceTemplate": asked}]
            _new_template(call, group)
        if size is not None and int(size) != int(group["targetSize"]):
            _sized(call, group, int(size))
        return ""

    return begin(call, "compute", call.method.verb, call.key, end)


def _leaving(call: Call, key: str) -> None:
    group = call.find(key)
    if group and group.get("instanceTemplate"):
        shrink(call, key, group, managed_rows(call.world, key))


def _emptied(call: Call, key: str) -> Callable[[], bool]:
    return lambda: not managed_rows(call.world, key)


_INSTANCES = instances.COLLECTIONS[0]
_RETRY = 4
"""Time until a group tries again, in operations."""
_LETTERS = "bcdfghjklmnpqrstvwxz0123456789"
_new: Any = compute_collection("instanceGroupManagers", "InstanceGroupManager").made


def managed_rows(world: World, key: str) -> list[Json]:
    start = f"managed/{key}/"
    return [item for name, item in sorted(world.items.items()) if name.startswith(start)]


def _template_of(call: Call, group: Json) -> Json:
    versions = group.get("versions") or [{}]
    link = versions[0].get("instanceTemplate") or group.get("instanceTemplate", "")
    return existing(call, link, "global/instanceTemplates")


def _made(call: Call, key: str, item: Json) -> None:
    _new(call, key, item)
    item["baseInstanceName"] = item.get("baseInstanceName") or item["name"][:58]
    if "targetSize" not in item:
        raise ApiError(400, "Required field 'resource.targetSize' not specified", "required")
    size, item["targetSize"] = int(item["targetSize"]), 0
    template = _template_of(call, item)
    item["instanceTemplate"] = template["selfLink"]
    versions: list[Json] = item.get("versions") or [{}]
    item["versions"] = [{**version, "instanceTemplate": template["selfLink"]} for version in versions]
    place = key.rpartition("/instanceGroupManagers/")[0]
    item["instanceGroup"] = f"{call.link}{place}/instanceGroups/{item['name']}"
    item.setdefault("updatePolicy", {"type": "OPPORTUNISTIC", "minimalAction": "REPLACE"})
    item.setdefault("instanceLifecyclePolicy", {"defaultActionOnFailure": "REPAIR", "forceUpdateOnRepair": "NO"})
    if "regions" in key:
        known = item.setdefault("distributionPolicy", {}).get("zones") or _offering(call, template)
        item["distributionPolicy"]["zones"] = [
            {"zone": f"{call.link}projects/{call.path['project']}/zones/{each['zone'].rpartition('/')[2]}"}
            for each in known
        ]
    grow(call, key, item, size)


def _offering(call: Call, template: Json) -> list[Json]:
    """Return three zones of the region that have the machine, as far as is known."""
    properties = template["properties"]
    wanted = {each["acceleratorType"] for each in properties.get("guestAccelerators", [])}
    found: list[Json] = []
    for zone in sorted(each for each, region in zones().items() if region == call.path["region"]):
        try:
            check_machine_type(properties["machineType"], zone, "resource.properties")
        except ApiError:
            continue
        if wanted <= accelerator_types(zone).keys():
            found.append({"zone": zone})
    return found[:3]


def grow(call: Call, key: str, group: Json, count: int, names: list[str] | None = None) -> None:
    """Add instances, of these names. They are created while the group's operation runs."""
    group["targetSize"] = int(group["targetSize"]) + count
    places = [each["zone"].rpartition("/")[2] for each in group.get("distributionPolicy", {}).get("zones", [])]
    for index in range(count):
        taken = managed_rows(call.world, key)
        zone = min(places, key=lambda one: sum(r["zone"] == one for r in taken)) if places else call.path["zone"]
        ending = "".join(secrets.choice(_LETTERS) for _ in range(4))
        name = names[index] if names else f"{group['baseInstanceName']}-{ending}"
        row = {"name": name, "zone": zone, "currentAction": "CREATING", "targetStatus": "RUNNING"}
        call.world.items[f"managed/{key}/{name}"] = row
        life.later(call.world, call.world.settle_s / 2, partial(_create, call, key, row))
    count_instances(call, key, group)


def _instance(call: Call, row: Json) -> str:
    return f"projects/{call.path['project']}/zones/{row['zone']}/instances/{row['name']}"


def _create(call: Call, key: str, row: Json) -> None:
    group, at = call.find(key), _instance(call, row)
    kept_row = call.world.items.get(f"managed/{key}/{row['name']}") is row
    if group is None or not kept_row or row["currentAction"] not in ("CREATING", "RECREATING"):
        return
    if there := call.find(at):
        if there["id"] != row.get("id"):
            _failed(call, key, row, Failure("RESOURCE_ALREADY_EXISTS", f"The resource '{at}' already exists"))
        return
    template = _template_of(call, group)
    body = instances.insert_body(call, {"name": row["name"]}, copy.deepcopy(template["properties"]), row["zone"])
    metadata = body.setdefault("metadata", {}).setdefault("items", [])
    told = {"created-by": key, "instance-template": template["selfLink"].partition("/compute/v1/")[2]}
    metadata += [
        {"key": k, "value": value.replace(f"/{call.path['project']}/", f"/{PROJECT_NUMBER}/", 1)}
        for k, value in told.items()
    ]
    for name, patch in group.get("allInstancesConfig", {}).get("properties", {}).items():
        if name == "metadata":
            rest = [each for each in metadata if each["key"] not in patch]
            body["metadata"]["items"] = [*rest, *({"key": k, "value": v} for k, v in patch.items())]
        else:
            body[name] = {**body.get(name, {}), **patch}
    for disk in body.get("disks", []):
        disk.pop("index", None)
        if not disk.get("boot") and "initializeParams" in disk:
            disk["initializeParams"].pop("diskName", None)
    row["template"] = template["selfLink"]
    path = {"project": call.path["project"], "zone": row["zone"]}
    made = life.inner(call.world, "compute.instances.insert", at.rpartition("/")[0], path)
    try:
        verbs.create(Call(**{**vars(made), "body": body}), _INSTANCES)
    except ApiError as error:
        _failed(call, key, row, Failure("INVALID_FIELD_VALUE", str(error)))
        return
    row["id"] = (call.find(at) or {})["id"]


def _failed(call: Call, key: str, row: Json, why: Failure | None) -> None:
    row["lastAttempt"] = {"errors": {"errors": [why.as_json()]}} if why else {}
    life.later(call.world, _RETRY * call.world.settle_s, partial(_create, call, key, row))


def note_change(call: Call, at: str, what: str, why: Failure | None) -> None:
    """Record the change of an instance, which may belong to a group."""
    _, _, _, zone, _, name = at.split("/")
    for place, row in list(call.world.items.items()):
        if place.startswith("managed/") and place.endswith(f"/{name}") and row["zone"] == zone:
            key = place.removeprefix("managed/").rpartition("/")[0]
            _noticed(call, key, at, row, what, why)
            count_instances(call, key)


def _lets_be(group: Json) -> bool:
    return group.get("instanceLifecyclePolicy", {}).get("defaultActionOnFailure") == "DO_NOTHING"


def _noticed(call: Call, key: str, at: str, row: Json, what: str, why: Failure | None) -> None:
    group = call.find(key) or {}
    if what == "failed":
        _failed(call, key, row, why)
    elif what == "running" and row["currentAction"] in ("CREATING", "RECREATING"):
        row["currentAction"] = "NONE"
        row.pop("lastAttempt", None)
    elif what == "gone" and row["currentAction"] == "DELETING":
        del call.world.items[f"managed/{key}/{row['name']}"]
    elif row["currentAction"] == "NONE" and _lets_be(group):
        pass
    elif what == "gone":
        row["currentAction"] = "RECREATING"
        life.later(call.world, call.world.settle_s, partial(_create, call, key, row))
    elif what == "terminated" and row["currentAction"] == "NONE":
        recreate(call, key, row)


def recreate(call: Call, key: str, row: Json) -> None:
    row["currentAction"] = "RECREATING"
    item = call.find(_instance(call, row))
    if item is None:
        life.later(call.world, call.world.settle_s, partial(_create, call, key, row))
    else:
        delete_instance(call, row)


def delete_instance(call: Call, row: Json) -> None:
    verbs.delete(life.of_instance(call.world, _instance(call, row), "delete"), _INSTANCES)


def shrink(call: Call, key: str, group: Json, gone: list[Json]) -> None:
    group["targetSize"] = max(0, int(group["targetSize"]) - len(gone))
    for row in gone:
        if call.find(_instance(call, row)):
            row["currentAction"], row["targetStatus"] = "DELETING", "DELETED"
            delete_instance(call, row)
        else:
            del call.world.items[f"managed/{key}/{row['name']}"]
    count_instances(call, key)


def count_instances(call: Call, key: str, group: Json | None = None) -> None:
    """Update what a group reports of its instances."""
    group, known = group or call.find(key), managed_rows(call.world, key)
    if group is None:
        return
    actions = ("none", "creating", "recreating", "deleting", "abandoning", "refreshing", "restarting", "verifying")
    count = {name: sum(row["currentAction"].lower() == name for row in known) for name in actions}
    group["currentActions"] = count
    same = {row.get("template") for row in known} <= {group.get("instanceTemplate")}
    group["status"] = {
        "isStable": count["none"] == len(known) == int(group["targetSize"]),
        "versionTarget": {"isReached": same},
        "allInstancesConfig": {"effective": True},
        "stateful": {"hasStatefulConfig": False, "perInstanceConfigs": {"allEffective": True}},
    }


life.LISTENERS.append(note_change)


_new_template_item: Any = compute_collection("instanceTemplates", "InstanceTemplate").made


def _template_made(call: Call, key: str, item: Json) -> None:
    _new_template_item(call, key, item)
    properties: Json = copy.deepcopy(item.get("properties") or {})
    kind = properties.get("machineType", "")
    if not kind:
        raise ApiError(400, "Required field 'resource.properties.machineType' not specified", "required")
    if "/" in kind:
        # A template takes bare names; the words are those of a name that does not match, from memory.
        said = f"Invalid value for field 'resource.properties.machineType': '{kind}'. Must be a match of regex"
        raise ApiError(400, f"{said} '(?:[a-z](?:[-a-z0-9]{{0,61}}[a-z0-9])?)'", "invalid")
    at = "resource.properties"
    body.scheduling(properties, body.has_accelerators(kind, properties.get("guestAccelerators") or []), at)
    body.interfaces(call, properties, call.path.get("region", ""), at, addresses=False)
    body.accounts(call, properties)
    for index, disk in enumerate(properties.get("disks", [])):
        disk |= {"kind": "compute#attachedDisk", "index": index, "boot": bool(disk.get("boot"))}
        disk.setdefault("mode", "READ_WRITE")
        disk.setdefault("type", "PERSISTENT")
        if source := disk.get("initializeParams", {}).get("sourceImage"):
            resolve_image(call, source)
    for name in ("metadata", "tags"):
        if name in properties:
            properties[name]["fingerprint"] = "template"
    properties.setdefault("canIpForward", False)
    item["properties"] = properties


_LIFE: Any = {"made": _made, "leaving": _leaving, "ending": _emptied}
COLLECTIONS = (
    compute_collection("instanceTemplates", "InstanceTemplate", made=_template_made, leaving=refuse_if_in_use),
    compute_collection("regionInstanceTemplates", "InstanceTemplate", made=_template_made, leaving=refuse_if_in_use),
    compute_collection("instanceGroupManagers", "InstanceGroupManager", **_LIFE),
    compute_collection("regionInstanceGroupManagers", "InstanceGroupManager", **_LIFE),
)
_METHODS: dict[str, Callable[[Call, Collection], Json]] = {
    "resize": resize,
    "createInstances": create_instances,
    "deleteInstances": delete_instances,
    "abandonInstances": abandon_instances,
    "recreateInstances": recreate_instances,
    "listManagedInstances": list_instances,
    "listErrors": errors,
    "setInstanceTemplate": set_template,
    "patch": patch,
}
OWN = {
    f"compute.{kind}.{name}": act
    for kind in ("instanceGroupManagers", "regionInstanceGroupManagers")
    for name, act in _METHODS.items()
}
