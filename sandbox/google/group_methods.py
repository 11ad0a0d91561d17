"""What is done with a managed instance group."""

from collections.abc import Callable
from typing import Any

from . import groups, verbs
from .compute import compute_collection
from .errors import Refused
from .operations import begin
from .world import Call, Collection, Json


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
    known = groups.rows(call.world, call.key)
    # Those that are not there yet go first.
    going = sorted(known, key=lambda row: row["currentAction"] == "NONE")[: max(0, len(known) - size)]
    groups.shrink(call, call.key, group, going)
    if size > len(known):
        group["targetSize"] = len(known)
        groups.grow(call, call.key, group, size - len(known))


def create_instances(call: Call, collection: Collection) -> Json:
    """The named ones. That a name is taken is refused in words of ours: Google's are not known."""
    group = verbs.get(call, collection)
    names = [each["name"] for each in call.body.get("instances", [])]
    taken = {row["name"] for row in groups.rows(call.world, call.key)}
    if double := sorted(taken.intersection(names)) or sorted({name for name in names if names.count(name) > 1}):
        raise Refused(400, f"Invalid value for field 'instances[].name': '{double[0]}'. It already exists.", "invalid")
    groups.grow(call, call.key, group, len(names), names)
    return begin(call, "compute", "createInstances", call.key, lambda: "")


def _named(call: Call) -> list[Json]:
    """The rows of the instances that a body names by their links. A group refuses those that it does not have."""
    known = {row["name"]: row for row in groups.rows(call.world, call.key)}
    asked = [each.rpartition("/")[2] for each in call.body.get("instances", [])]
    skips = call.body.get("skipInstancesOnValidationError")
    if (strange := [name for name in asked if name not in known]) and not skips:
        said = f"Invalid value for field 'instances': '{strange[0]}'. Instance is not a member of"
        raise Refused(400, f"{said} '{call.key}'.", "invalid")
    return [known[name] for name in asked if name in known]


def delete_instances(call: Call, collection: Collection) -> Json:
    group, rows = verbs.get(call, collection), _named(call)
    groups.shrink(call, call.key, group, rows)
    return begin(call, "compute", "deleteInstances", call.key, lambda: "", _all_gone(call, rows))


def _all_gone(call: Call, rows: list[Json]) -> Callable[[], bool]:
    return lambda: not any(row in groups.rows(call.world, call.key) for row in rows)


def abandon_instances(call: Call, collection: Collection) -> Json:
    group, rows = verbs.get(call, collection), _named(call)
    for row in rows:
        del call.world.items[f"managed/{call.key}/{row['name']}"]
    group["targetSize"] = max(0, int(group["targetSize"]) - len(rows))
    groups.counted(call, call.key)
    return begin(call, "compute", "abandonInstances", call.key, lambda: "")


def recreate_instances(call: Call, collection: Collection) -> Json:
    verbs.get(call, collection)
    for row in _named(call):
        groups.recreate(call, call.key, row)
    groups.counted(call, call.key)
    return begin(call, "compute", "recreateInstances", call.key, lambda: "")


def listed(call: Call, collection: Collection) -> Json:
    verbs.get(call, collection)
    return {"managedInstances": [_shown(call, row) for row in groups.rows(call.world, call.key)]}


def _shown(call: Call, row: Json) -> Json:
    key = f"projects/{call.path['project']}/zones/{row['zone']}/instances/{row['name']}"
    item = call.find(key)
    made: Json = {"name": row["name"], "instance": f"{call.link}{key}", "currentAction": row["currentAction"]}
    made["targetStatus"] = row["targetStatus"]
    made |= {"id": item["id"], "instanceStatus": item["status"]} if item else {}
    made |= {"lastAttempt": row["lastAttempt"]} if row.get("lastAttempt") else {}
    return made | ({"version": {"instanceTemplate": row["template"]}} if "template" in row else {})


def errors(call: Call, collection: Collection) -> Json:
    """The last error of each instance that could not be made."""
    verbs.get(call, collection)
    rows = [row for row in groups.rows(call.world, call.key) if row.get("lastAttempt")]
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
    """Instances are made anew where the group's policy is proactive, all at once: no surge is kept to."""
    template = groups.existing(call, group["versions"][0]["instanceTemplate"], "global/instanceTemplates")
    group["instanceTemplate"] = group["versions"][0]["instanceTemplate"] = template["selfLink"]
    if group.get("updatePolicy", {}).get("type") == "PROACTIVE":
        for row in groups.rows(call.world, call.key):
            if row.get("template") not in (None, template["selfLink"]):
                groups.recreate(call, call.key, row)
    groups.counted(call, call.key)


def patch(call: Call, collection: Collection) -> Json:
    """A new size, template or policy. What it says of a template holds when the operation has ended."""
    group = verbs.get(call, collection)
    size, template = call.body.get("targetSize"), group.get("instanceTemplate")
    versions: list[Json] = call.body.get("versions") or []
    asked = call.body.get("instanceTemplate") or (versions[0].get("instanceTemplate") if versions else None)
    if asked:
        groups.existing(call, asked, "global/instanceTemplates")

    def end() -> str:
        group.update({**verbs.merged(group, call.body), "targetSize": group["targetSize"]})
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
        groups.shrink(call, key, group, groups.rows(call.world, key))


def _emptied(call: Call, key: str) -> Callable[[], bool]:
    return lambda: not groups.rows(call.world, key)


_LIFE: Any = {"made": groups.MADE, "leaving": _leaving, "ending": _emptied}
COLLECTIONS = (
    compute_collection("instanceGroupManagers", "InstanceGroupManager", **_LIFE),
    compute_collection("regionInstanceGroupManagers", "InstanceGroupManager", **_LIFE),
)
_METHODS: dict[str, Callable[[Call, Collection], Json]] = {
    "resize": resize,
    "createInstances": create_instances,
    "deleteInstances": delete_instances,
    "abandonInstances": abandon_instances,
    "recreateInstances": recreate_instances,
    "listManagedInstances": listed,
    "listErrors": errors,
    "setInstanceTemplate": set_template,
    "patch": patch,
}
OWN = {
    f"compute.{kind}.{name}": act
    for kind in ("instanceGroupManagers", "regionInstanceGroupManagers")
    for name, act in _METHODS.items()
}
