"""Virtual machines of Compute Engine: their creation, changes and deletion."""

import copy
import secrets
from collections.abc import Callable
from typing import Any

from .. import verbs
from ..errors import ApiError, Failure
from ..operations import begin
from ..world import Call, Collection, Json
from . import instance_body as body
from . import instance_life as life
from .api import check_place, compute_collection, set_labels, zones
from .disks import add_disk, attach, free, leave

_new: Any = compute_collection("instances", "Instance").made


def insert_body(call: Call, item: Json, properties: Json, zone: str) -> Json:
    """Return an instance's body over a template's properties, whose names of types are bare."""
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
    check_place(call)
    zone, project = call.path["zone"], call.path["project"]
    region = zones().get(zone, zone.rpartition("-")[0])
    _from_template(call, item)
    _new(call, key, item)
    given = item.get("machineType")
    if not given:
        raise ApiError(400, "Required field 'resource.machineType' not specified", "required")
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
    life.schedule_staging(call, item)


def _settled(call: Call, key: str) -> str | Failure:
    item = call.find(key)
    if item is None or item["status"] not in ("PROVISIONING", "STAGING"):
        return ""
    if why := life.room_failure(call, key, item):
        _failed(call, key, why)
        return why
    life.boot(call, key, item)
    return ""


def _failed(call: Call, key: str, why: Failure | None = None) -> None:
    if item := call.find(key):
        free(call, key, item)
        del call.world.items[f"compute/{key}"]
    planned = Failure("INTERNAL_ERROR", call.plan.fails) if call.plan else None
    life.tell(call, key, "failed", why or planned)


def _leaving(call: Call, key: str) -> None:
    item = call.find(key) or {}
    if item.get("deletionProtection"):
        # https://cloud.google.com/compute/docs/instances/preventing-accidental-vm-deletion; the words are from memory.
        said = "Invalid resource usage: 'Resource cannot be deleted if it's protected against deletion. To delete the"
        raise ApiError(400, f"{said} resource, deletion protection must be disabled.'.", "invalidResourceUsage")
    life.stopping(call, key, item)


def _gone(call: Call, key: str) -> str:
    if item := call.find(key):
        life.remove_instance(call, key, item)
    return ""


COLLECTIONS = (
    compute_collection(
        "instances", "Instance", made=_made, settled=_settled, failed=_failed, leaving=_leaving, gone=_gone,
        ending=lambda call, key: lambda: not call.world.guests.running(f"compute/{key}"),
    ),
)  # fmt: skip


def start(call: Call, collection: Collection) -> Json:
    item = verbs.get(call, collection)
    if item["status"] == "STOPPING":
        raise _not_ready(call)
    begun = item["status"] == "TERMINATED"
    if begun:
        life.check_reservation(call, item)
        item["status"] = "PROVISIONING"
        life.schedule_staging(call, item)

    def end() -> str | Failure:
        if not begun or call.find(call.key) is not item:
            return ""
        if why := life.room_failure(call, call.key, item):
            life.end_instance(call, call.key, item)
            return why
        life.boot(call, call.key, item)
        return ""

    def failed() -> None:
        if begun:
            life.end_instance(call, call.key, item)

    return begin(call, "compute", "start", call.key, end, failed=failed)


def stop(call: Call, collection: Collection) -> Json:
    item = verbs.get(call, collection)
    stops = item["status"] != "TERMINATED"
    life.stopping(call, call.key, item)

    def end() -> str:
        if stops and call.find(call.key) is item and item["status"] == "STOPPING":
            life.end_instance(call, call.key, item)
        return ""

    return begin(call, "compute", "stop", call.key, end, _is_off(call))


def _is_off(call: Call) -> Callable[[], bool]:
    return lambda: not call.world.guests.running(f"compute/{call.key}")


def _not_ready(call: Call) -> ApiError:
    # https://github.com/googleapis/google-cloud-java/issues/9312; the full words are from memory.
    return ApiError(400, f"The resource '{call.key}' is not ready", "resourceNotReady")


def reset(call: Call, collection: Collection) -> Json:
    """Switch the machine off and on at once, without a shutdown; it stays RUNNING."""
    item = verbs.get(call, collection)
    if item["status"] != "RUNNING":
        raise _not_ready(call)
    return _restarted(call, item, "reset")


def _restarted(call: Call, item: Json, verb: str) -> Json:
    item["lastStartTimestamp"] = ""  # or the end of the machine would pass for one that switched itself off
    item["status"] = "REPAIRING" if verb != "reset" else "RUNNING"
    call.world.guests.stop(f"compute/{call.key}")

    def end() -> str:
        if call.find(call.key) is item:
            life.boot(call, call.key, item)
        return ""

    return begin(call, "compute", verb, call.key, end, _is_off(call))


def maintenance(call: Call, collection: Collection) -> Json:
    """Simulate host maintenance. A machine that migrates does not notice; of the rest, one that restarts automatically
    is started again, and a Spot machine is preempted. Source:
    https://cloud.google.com/compute/docs/instances/simulating-host-maintenance."""
    item = verbs.get(call, collection)
    if item["status"] != "RUNNING":
        raise _not_ready(call)
    asked = item["scheduling"]
    if asked["onHostMaintenance"] == "MIGRATE":
        return begin(call, "compute", "simulateMaintenanceEvent", call.key, lambda: "")
    if asked["automaticRestart"]:
        return _restarted(call, item, "simulateMaintenanceEvent")
    if asked["preemptible"]:
        life.preempt(call.world, call.key)
    else:
        life.leave(call, call.key, item)
    return begin(call, "compute", "simulateMaintenanceEvent", call.key, lambda: "", _is_off(call))


def attach_disk(call: Call, collection: Collection) -> Json:
    item, disk = verbs.get(call, collection), copy.deepcopy(call.body)
    add_disk(call, call.key, item, disk)
    return begin(call, "compute", "attachDisk", call.key, lambda: "")


def detach_disk(call: Call, collection: Collection) -> Json:
    item, name = verbs.get(call, collection), call.query.get("deviceName", "")
    disk = next((each for each in item["disks"] if each["deviceName"] == name), None)
    if disk is None:
        said = f"Invalid value for field 'deviceName': '{name}'. No attached disk found with device name '{name}'"
        raise ApiError(400, said, "invalid")

    def end() -> str:
        item["disks"] = [each for each in item["disks"] if each is not disk]
        leave(call, call.key, disk)
        return ""

    return begin(call, "compute", "detachDisk", call.key, end)


def guest_attributes(call: Call, collection: Collection) -> Json:
    """Return what the guest wrote below `queryPath` ("space/" or "space/key"), or as `variableKey`. Wording:
    ssh_utils.py of gcloud, which looks for it."""
    verbs.get(call, collection)
    path = call.query.get("queryPath") or call.query.get("variableKey", "")
    space, _, name = path.partition("/")
    known = call.world.guests.attributes(f"compute/{call.key}")
    rows = [
        {"namespace": each, "key": key, "value": value}
        for each, values in sorted(known.items())
        for key, value in sorted(values.items())
        if space in ("", each) and name in ("", key)
    ]
    if not rows:
        raise ApiError(404, f"The resource '{path}' of type 'Guest Attribute' was not found.")
    made: Json = {"kind": "compute#guestAttributes", "selfLink": f"{call.link}{call.key}/guestAttributes/{path}"}
    if "variableKey" in call.query:
        return {**made, "variableKey": path, "variableValue": rows[0]["value"]}
    return {**made, "queryPath": path, "queryValue": {"items": rows}}


def serial_output(call: Call, collection: Collection) -> Json:
    verbs.get(call, collection)
    text, begins = call.world.guests.serial(f"compute/{call.key}"), int(call.query.get("start", 0))
    made = {"kind": "compute#serialPortOutput", "contents": text[begins:], "start": str(begins)}
    return {**made, "next": str(len(text)), "selfLink": f"{call.link}{call.key}/serialPort"}


def aggregate(call: Call, collection: Collection) -> Json:
    """Return everything of a collection by zone or region. Empty places are left out, where Google adds a warning."""
    kind = collection.id.rpartition(".")[2]
    found: Json = {}
    for place in ("zones", "regions"):
        for item in call.world.below("compute", f"projects/{call.path['project']}/{place}/-/{kind}"):
            if verbs.matches(item, call.query.get("filter", "")):
                where = f"{place}/{item[place[:-1]].rpartition('/')[2]}"
                found.setdefault(where, {kind: []})[kind].append(item)
    return {"kind": f"compute#{kind.removesuffix('s')}AggregatedList", "items": found}


def refuse_method(call: Call, collection: Collection) -> Json:
    raise ApiError(501, f"the sandbox does not serve {call.method.id}")


def _fingerprinted(name: str) -> Callable[[Call, Json], Json]:
    """Return a change that requires the current fingerprint. Wording: FINGERPRINT_FAIL_ERRORS of the provider's
    metadata.go, which has it for metadata; the wording for tags is assumed to be the same."""

    def change(call: Call, item: Json) -> Json:
        if call.body.get("fingerprint") != item[name]["fingerprint"]:
            said = "Supplied fingerprint does not match current metadata fingerprint."
            raise ApiError(412, said, "conditionNotMet")
        made = {**copy.deepcopy(call.body), "fingerprint": secrets.token_urlsafe(9)}
        if name == "metadata":
            made["kind"] = "compute#metadata"
            call.world.guests.change(f"compute/{call.key}", body.metadata_of({"metadata": made}))
        return {name: made}

    return change


def _stopped(change: Callable[[Call, Json], Json]) -> Callable[[Call, Json], Json]:
    """Return a change that a running machine refuses. Google's words are from memory of users' reports."""

    def checked(call: Call, item: Json) -> Json:
        if item["status"] != "TERMINATED":
            said = "Invalid resource usage: 'Instance must be stopped (TERMINATED) for this operation.'."
            raise ApiError(400, said, "invalidResourceUsage")
        return change(call, item)

    return checked


def _machine_type(call: Call, item: Json) -> Json:
    zone = call.path["zone"]
    name = body.check_machine_type(call.body["machineType"], zone, "resource")
    gpus = body.accelerators([], name, zone, call.path["project"])
    body.scheduling(copy.deepcopy(item), body.has_accelerators(name, gpus), "resource")
    place = f"{call.link}projects/{call.path['project']}/zones/{zone}"
    shown = [{**each, "acceleratorType": f"{place}/acceleratorTypes/{each['acceleratorType']}"} for each in gpus]
    kept = item["guestAccelerators"] if body.n1(name) else shown
    return {"machineType": f"{place}/machineTypes/{name}", "guestAccelerators": kept}


def _scheduling(call: Call, item: Json) -> Json:
    made = {"scheduling": copy.deepcopy(call.body)}
    name = item["machineType"].rpartition("/")[2]
    body.scheduling(made, body.has_accelerators(name, item["guestAccelerators"]), "resource")
    if made["scheduling"]["preemptible"] != item["scheduling"]["preemptible"] and item["status"] != "TERMINATED":
        raise ApiError(400, "Invalid value for field 'resource.preemptible'. It can be set on a stopped instance only.")
    return made


def _account(call: Call, item: Json) -> Json:
    email = call.body.get("email")
    made: Json = {"serviceAccounts": [{"email": email, "scopes": call.body.get("scopes", [])}] if email else []}
    body.accounts(call, made)
    return made


def _auto_delete(call: Call, item: Json) -> Json:
    disks = copy.deepcopy(item["disks"])
    for disk in disks:
        if disk["deviceName"] == call.query["deviceName"]:
            disk["autoDelete"] = call.query["autoDelete"] == "true"
    return {"disks": disks}


def _policies(add: bool) -> Callable[[Call, Json], Json]:
    def change(call: Call, item: Json) -> Json:
        region = item["zone"].rpartition("/")[2].rpartition("-")[0]
        asked: Json = {"resourcePolicies": call.body.get("resourcePolicies", [])}
        body.policies(call, asked, region)
        rest = [each for each in item.get("resourcePolicies", []) if each not in asked["resourcePolicies"]]
        return {"resourcePolicies": [*rest, *(asked["resourcePolicies"] if add else [])]}

    return change


_AT = "compute.instances"
CHANGES: dict[str, Callable[[Call, Json], Json]] = {
    f"{_AT}.setLabels": set_labels,
    f"{_AT}.setMetadata": _fingerprinted("metadata"),
    f"{_AT}.setTags": _fingerprinted("tags"),
    f"{_AT}.setMachineType": _stopped(_machine_type),
    f"{_AT}.setMinCpuPlatform": _stopped(lambda call, item: {"minCpuPlatform": call.body.get("minCpuPlatform", "")}),
    f"{_AT}.setServiceAccount": _stopped(_account),
    f"{_AT}.setScheduling": _scheduling,
    f"{_AT}.setDiskAutoDelete": _auto_delete,
    f"{_AT}.addResourcePolicies": _policies(True),
    f"{_AT}.removeResourcePolicies": _policies(False),
    f"{_AT}.setDeletionProtection": lambda call, item: {
        "deletionProtection": call.query.get("deletionProtection", "true") == "true"
    },
    f"{_AT}.updateDisplayDevice": _stopped(lambda call, item: {"displayDevice": call.body}),
    f"{_AT}.updateShieldedInstanceConfig": _stopped(
        lambda call, item: {"shieldedInstanceConfig": {**item["shieldedInstanceConfig"], **call.body}}
    ),
}
OWN: dict[str, Callable[[Call, Collection], Any]] = {
    f"{_AT}.start": start,
    f"{_AT}.stop": stop,
    f"{_AT}.reset": reset,
    f"{_AT}.simulateMaintenanceEvent": maintenance,
    f"{_AT}.attachDisk": attach_disk,
    f"{_AT}.detachDisk": detach_disk,
    f"{_AT}.getGuestAttributes": guest_attributes,
    f"{_AT}.getSerialPortOutput": serial_output,
    f"{_AT}.update": refuse_method,
    **{
        f"compute.{kind}.aggregatedList": aggregate
        for kind in ("addresses", "disks", "futureReservations", "instanceGroupManagers", "instances", "reservations")
    },
}
