"""Whether a record asks for what a target promises, and for nothing else: the last look before machines are made.

Compared are the account, the project, zones and network, what the machines are and whose image they boot, and that
nothing runs on them but the agent. The image itself may be another one of the same project: a job goes on where a
target's image was renewed. A target is a JSON value here, since the stack's function has no models.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from . import labels
from .record import Record

Json = Mapping[str, Any]
Row = tuple[str, object, object]
"""A field, what the record has, and what the target has."""

_PROPERTIES = (
    *("machineType", "disks", "networkInterfaces", "serviceAccounts", "scheduling", "shieldedInstanceConfig"),
    *("labels", "metadata", "tags", "guestAccelerators", "reservationAffinity", "resourcePolicies"),
)
_DISK, _BOOT = ("boot", "autoDelete", "initializeParams"), ("sourceImage", "diskSizeGb", "diskType")
_NODE = (
    *("acceleratorType", "acceleratorConfig", "runtimeVersion", "networkConfig", "serviceAccount"),
    *("labels", "metadata", "tags"),
)
UNSAID: Json = {
    "external_address": False,
    **{"tags": [], "types": [], "machine_types": []},
    **{"reservation": None, "placement": None},
}
"""What a target has where it does not say: those that are published leave it out."""
_TPU = ("node", "subnetworks", "slices", "valid_s", "reservation")


def difference(record: Record, target: Json) -> str | None:
    """The first field in which they differ, in words; None where the record may be carried out."""
    try:
        for field, given, wanted in _rows(record, {**UNSAID, **target}):
            if given != wanted:
                return f"{field}: is {_shown(given)}, and the target has {_shown(wanted)}"
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        return f"is no request for machines: {type(error).__name__}: {error}"
    return None


def _rows(record: Record, target: Json) -> Iterator[Row]:
    yield from _common(record, target)
    yield from _OF_KIND[record.kind](record.body, target)


def _shown(value: object) -> str:
    return "nothing" if value in (None, [], "") else str(value)


def _outside(given: Collection[str], allowed: Collection[str]) -> list[str]:
    return sorted(set(given) - set(allowed))


def _common(record: Record, target: Json) -> Iterator[Row]:
    body, project = record.body, target["project"]
    yield "kind", record.kind, target["kind"]
    yield "standing", body.get("standing"), None
    yield "project", body["project"], project
    yield "bucket", body["bucket"], target["bucket"]
    yield "job.project", body["job"]["project"], project
    yield "job.log", body["job"]["log"], f"projects/{project}/logs/{labels.LOG}"
    if outside := _outside([*body["zones"], record.last.zone], target["zones"]):
        yield "zones", outside, target["zones"]
    for region, subnetwork in body["machine"]["subnetworks"].items():
        yield f"subnetworks.{region}", subnetwork, target["subnetworks"].get(region)


def _told(metadata: Json) -> Row:
    """Nothing that starts anything: a startup script is added for each attempt."""
    known = {**labels.METADATA, **labels.DRIVER}
    return "metadata", metadata, {key: known[key] for key in metadata if key in known}


def _gce(body: Json, target: Json) -> Iterator[Row]:
    made: Json = body["machine"]["properties"]
    (disk,), (nic,) = made["disks"], made["networkInterfaces"]
    yield "serviceAccounts", made["serviceAccounts"], [{"email": target["service_account"], "scopes": [labels.SCOPE]}]
    yield "network", nic["network"], target["network"]
    yield "external_address", "accessConfigs" in nic, target["external_address"]
    boot = disk["initializeParams"]
    yield "image", _project(boot["sourceImage"]), _project(target["image"])
    for where, given, allowed in (
        ("machine", body["machine"], ("properties", "subnetworks", "group", "wait_s")),
        ("properties", made, _PROPERTIES),
        ("networkInterfaces", nic, ("network", "accessConfigs")),
        ("disks", disk, _DISK),
        ("disks.initializeParams", boot, _BOOT),
    ):
        yield where, _outside(given, allowed), []
    yield "type", body["type"], made["machineType"]
    if target["machine_types"] and made["machineType"] not in target["machine_types"]:
        yield "machineType", made["machineType"], target["machine_types"]
    # An earlier client made machines without it.
    if prefix := body.get(labels.PREFIX):
        yield labels.PREFIX, prefix, target.get(labels.PREFIX)
    yield "tags", made.get("tags"), {"items": target["tags"]} if target["tags"] else None
    yield "resourcePolicies", _outside(made.get("resourcePolicies", []), [_last(target["placement"])]), []
    reserved = made.get("reservationAffinity", {}).get("values", [])
    yield "reservation", [_last(each) for each in reserved], [_last(target["reservation"])] if reserved else []
    yield _told({each["key"]: each["value"] for each in made["metadata"]["items"]})


def _tpu_vm(body: Json, target: Json) -> Iterator[Row]:
    node: Json = body["machine"]["node"]
    network: Json = node["networkConfig"]
    yield "serviceAccount", node["serviceAccount"], {"email": target["service_account"], "scope": [labels.SCOPE]}
    yield "network", network["network"], target["network"]
    yield "external_address", network["enableExternalIps"], target["external_address"]
    for where, given, allowed in (
        ("machine", body["machine"], _TPU),
        ("node", node, _NODE),
        ("networkConfig", network, ("network", "enableExternalIps")),
    ):
        yield where, _outside(given, allowed), []
    if target["types"] and not set(_names(node)) & set(target["types"]):
        yield "type", _names(node)[0], target["types"]
    yield "tags", node.get("tags", []), target["tags"]
    reserved = body["machine"]["reservation"]
    if reserved not in (None, "-"):
        yield "reservation", _last(reserved), _last(target["reservation"])
    yield _told(node["metadata"])


_OF_KIND = {"gce": _gce, "tpu-vm": _tpu_vm}


def _names(node: Json) -> list[str]:
    """What a slice may be called: the number after a generation counts chips, or cores, of which a chip has two."""
    if "acceleratorConfig" not in node:
        return [node["acceleratorType"]]
    shape: Json = node["acceleratorConfig"]
    chips = math.prod(int(side) for side in shape["topology"].split("x"))
    return [f"{shape['type'].lower().replace('_', '')}-{count}" for count in (chips, 2 * chips)]


def _project(image: str) -> str:
    """Of projects/<p>/global/images/..., the p."""
    return image.partition("projects/")[2].partition("/")[0]


def _last(path: str | None) -> str:
    return (path or "").rpartition("/")[2]
