"""Compute Engine's virtual machines: how they are made and deleted."""

from typing import Any

from . import instance_body as body
from . import instance_life as life
from .compute import compute_collection, located, zones
from .disks import attach, free
from .errors import Failure, Refused
from .world import Call, Json

_new: Any = compute_collection("instances", "Instance").made


def insert_body(call: Call, item: Json, properties: Json, zone: str) -> Json:
    """An instance's body over a template's properties, whose names of types are bare."""
    made = {**properties, **item}
    kinds = f"projects/{call.path['project']}/zones/{zone}"
    if "machineType" not in item and "machineType" in made:
        made["machineType"] = f"{kinds}/machineTypes/{made['machineType']}"
    return made


def _from_template(call: Call, item: Json) -> None:
    if source := call.query.get("sourceInstanceTemplate"):
        template = body.existing(call, source, "global/instanceTemplates")
        made = insert_body(call, dict(item), template["properties"], call.path["zone"])
        item.update(made)


def _made(call: Call, key: str, item: Json) -> None:
    located(call)
    zone, project = call.path["zone"], call.path["project"]
    region = zones().get(zone, zone.rpartition("-")[0])
    _from_template(call, item)
    _new(call, key, item)
    given = item.get("machineType")
    if not given:
        raise Refused(400, "Required field 'resource.machineType' not specified", "required")
    name = body.check_machine_type(given, zone, "resource")
    place = f"{call.link}projects/{project}/zones/{zone}"
    gpus = body.accelerators(item.get("guestAccelerators") or [], name, zone, project)
    body.scheduling(item, body.has_accelerators(name, gpus), "resource")
    body.interfaces(call, item, region, "resource")
    body.accounts(call, item)
    body.policies(call, item, region)
    item |= {"machineType": f"{place}/machineTypes/{name}", "status": "PROVISIONING", "startRestricted": False}
    item["guestAccelerators"] = [
        {**each, "acceleratorType": f"{place}/acceleratorTypes/{each['acceleratorType']}"} for each in gpus
    ]
    body.fingerprints(item)
    item.setdefault("cpuPlatform", "Intel Cascade Lake")
    item.setdefault("canIpForward", False)
    item.setdefault("deletionProtection", False)
    item.setdefault("reservationAffinity", {"consumeReservationType": "ANY_RESERVATION"})
    life.check_reservation(call, item)
    shielded = item.setdefault("shieldedInstanceConfig", {})
    for field, value in (("enableSecureBoot", False), ("enableVtpm", True), ("enableIntegrityMonitoring", True)):
        shielded.setdefault(field, value)
    attach(call, key, item)
    life.staged(call, item)


def _settled(call: Call, key: str) -> str | Failure:
    item = call.find(key)
    if item is None or item["status"] not in ("PROVISIONING", "STAGING"):
        return ""
    if why := life.refused(call, key, item):
        _failed(call, key, why)
        return why
    life.boot(call, key, item)
    return ""


def _failed(call: Call, key: str, why: Failure | None = None) -> None:
    """What was to be is not, and neither is its boot disk."""
    if item := call.find(key):
        free(call, key, item)
        del call.world.items[f"compute/{key}"]
    planned = Failure("INTERNAL_ERROR", call.plan.fails) if call.plan else None
    life.tell(call, key, "failed", why or planned)


def _leaving(call: Call, key: str) -> None:
    item = call.find(key) or {}
    if item.get("deletionProtection"):
        # https://cloud.google.com/compute/docs/instances/preventing-accidental-vm-deletion, from memory of the words.
        said = "Invalid resource usage: 'Resource cannot be deleted if it's protected against deletion. To delete the"
        raise Refused(400, f"{said} resource, deletion protection must be disabled.'.", "invalidResourceUsage")
    life.stopping(call, key, item)


def _gone(call: Call, key: str) -> str:
    if item := call.find(key):
        life.removed(call, key, item)
    return ""


COLLECTIONS = (
    compute_collection(
        "instances", "Instance", made=_made, settled=_settled, failed=_failed, leaving=_leaving, gone=_gone,
        ending=lambda call, key: lambda: not call.world.guests.running(f"compute/{key}"),
    ),
)  # fmt: skip
