"""Managed instance groups, of a zone or a region: so many instances of a template, made again when they are lost.

What a group knows of each instance is an item of the API "managed", below the group's key. A group without a template
is one of GKE's: nothing is made of it. Source:
https://cloud.google.com/compute/docs/instance-groups/working-with-managed-instances.
"""

import copy
import secrets
from functools import partial
from typing import Any

from . import PROJECT_NUMBER, instances, verbs
from . import instance_life as life
from .compute import compute_collection, zones
from .errors import Failure, Refused
from .instance_body import accelerator_types, check_machine_type, existing
from .world import Call, Json, World

_INSTANCES = instances.COLLECTIONS[0]
_RETRY = 4
"""A group tries again after so many times the pace of an operation."""
_LETTERS = "bcdfghjklmnpqrstvwxz0123456789"
_new: Any = compute_collection("instanceGroupManagers", "InstanceGroupManager").made


def rows(world: World, key: str) -> list[Json]:
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
        raise Refused(400, "Required field 'resource.targetSize' not specified", "required")
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
    """Three zones of the region that have the machine, as far as is known."""
    properties = template["properties"]
    wanted = {each["acceleratorType"] for each in properties.get("guestAccelerators", [])}
    found: list[Json] = []
    for zone in sorted(each for each, region in zones().items() if region == call.path["region"]):
        try:
            check_machine_type(properties["machineType"], zone, "resource.properties")
        except Refused:
            continue
        if wanted <= accelerator_types(zone).keys():
            found.append({"zone": zone})
    return found[:3]


def grow(call: Call, key: str, group: Json, count: int, names: list[str] | None = None) -> None:
    """So many more instances, of these names. They are made when the group's operation is on its way."""
    group["targetSize"] = int(group["targetSize"]) + count
    places = [each["zone"].rpartition("/")[2] for each in group.get("distributionPolicy", {}).get("zones", [])]
    for index in range(count):
        taken = rows(call.world, key)
        zone = min(places, key=lambda one: sum(r["zone"] == one for r in taken)) if places else call.path["zone"]
        ending = "".join(secrets.choice(_LETTERS) for _ in range(4))
        name = names[index] if names else f"{group['baseInstanceName']}-{ending}"
        row = {"name": name, "zone": zone, "currentAction": "CREATING", "targetStatus": "RUNNING"}
        call.world.items[f"managed/{key}/{name}"] = row
        life.later(call.world, call.world.settle_s / 2, partial(_create, call, key, row))
    counted(call, key, group)


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
    except Refused as error:
        _failed(call, key, row, Failure("INVALID_FIELD_VALUE", str(error)))
        return
    row["id"] = (call.find(at) or {})["id"]


def _failed(call: Call, key: str, row: Json, why: Failure | None) -> None:
    row["lastAttempt"] = {"errors": {"errors": [why.as_json()]}} if why else {}
    life.later(call.world, _RETRY * call.world.settle_s, partial(_create, call, key, row))


def noticed(call: Call, at: str, what: str, why: Failure | None) -> None:
    """Something has become of an instance, which may be one of a group."""
    _, _, _, zone, _, name = at.split("/")
    for place, row in list(call.world.items.items()):
        if place.startswith("managed/") and place.endswith(f"/{name}") and row["zone"] == zone:
            key = place.removeprefix("managed/").rpartition("/")[0]
            _noticed(call, key, at, row, what, why)
            counted(call, key)


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
    """Delete an instance and make it again, under its name."""
    row["currentAction"] = "RECREATING"
    item = call.find(_instance(call, row))
    if item is None:
        life.later(call.world, call.world.settle_s, partial(_create, call, key, row))
    else:
        delete_instance(call, row)


def delete_instance(call: Call, row: Json) -> None:
    verbs.delete(life.of_instance(call.world, _instance(call, row), "delete"), _INSTANCES)


def shrink(call: Call, key: str, group: Json, gone: list[Json]) -> None:
    """Delete these instances, whether they are there yet or not."""
    group["targetSize"] = max(0, int(group["targetSize"]) - len(gone))
    for row in gone:
        if call.find(_instance(call, row)):
            row["currentAction"], row["targetStatus"] = "DELETING", "DELETED"
            delete_instance(call, row)
        else:
            del call.world.items[f"managed/{key}/{row['name']}"]
    counted(call, key)


def counted(call: Call, key: str, group: Json | None = None) -> None:
    """What a group says of its instances."""
    group, known = group or call.find(key), rows(call.world, key)
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


life.LISTENERS.append(noticed)
MADE = _made
