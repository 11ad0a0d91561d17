"""States of a virtual machine: PROVISIONING, STAGING, RUNNING, STOPPING, TERMINATED, and deleted. A running machine is
one of `world.guests`. Source: https://cloud.google.com/compute/docs/instances/instance-lifecycle."""

import os
import threading
import time
from collections.abc import Callable
from datetime import datetime

from .. import verbs
from ..capacity import count_consumption, count_instances, quota_failure, stockout_failure
from ..discovery import document
from ..errors import ApiError, Failure
from ..guests.machine import Machine
from ..operations import event
from ..world import Call, Json, Pending, World, stamp
from .disks import free, source_of
from .images import driver_of
from .instance_body import metadata_of

Told = Callable[[Call, str, str, Failure | None], None]
LISTENERS: list[Told] = []
"""Listeners for changes of an instance: its key, and "running", "terminated", "gone" or "failed"."""
NOTICE_S = float(os.environ.get("SANDBOX_PREEMPT_S", "30"))
"""Seconds from the notice of a preemption to the end. Source: https://cloud.google.com/compute/docs/instances/spot"""


def tell(call: Call, key: str, what: str, why: Failure | None = None) -> None:
    count_consumption(call)
    for listener in LISTENERS:
        listener(call, key, what, why)


def inner(world: World, method: str, key: str, path: dict[str, str], **query: str) -> Call:
    """Return a call of Compute Engine's own, without a body."""
    row = document("compute.v1")
    found = next(each for each in row.methods if each.id == method)
    return Call(world, "compute", row, found, key, path, query, {}, "")


def of_instance(world: World, key: str, verb: str = "get") -> Call:
    _, project, _, zone, _, name = key.split("/")
    return inner(world, f"compute.instances.{verb}", key, {"project": project, "zone": zone, "instance": name})


def later(world: World, seconds: float, act: Callable[[], None], ready: Callable[[], bool] = lambda: True) -> None:
    """Run `act` after `seconds`, whether or not a request comes then."""
    world.pending.append(Pending("", time.monotonic() + seconds, act, ready))
    timer = threading.Timer(seconds + 0.01, _tick, (world,))
    timer.daemon = True
    timer.start()


def _tick(world: World) -> None:
    with world.lock:
        world.tick()


def schedule_staging(call: Call, item: Json) -> None:
    def stage() -> None:
        if item["status"] == "PROVISIONING":
            item["status"] = "STAGING"

    whole_s = call.world.settle_s + (call.plan.delay_s if call.plan else 0)
    call.world.pending.append(Pending("", time.monotonic() + whole_s / 2, stage))


def room_failure(call: Call, key: str, item: Json) -> Failure | None:
    """Return why the zone has no room for the instance. A reservation is available whatever else is out of stock."""
    if why := quota_failure(call, item):
        return why
    if "resourceStatus" in item and item["resourceStatus"].get("reservationConsumptionInfo"):
        return None
    return stockout_failure(call, item)


def boot(call: Call, key: str, item: Json) -> None:
    """Boot the machine. It runs until it switches itself off or its time is over."""
    world, name = call.world, f"compute/{key}"
    item |= {"status": "RUNNING", "lastStartTimestamp": stamp()}
    accounts = item.get("serviceAccounts", [])
    gpus = item["guestAccelerators"]
    world.guests.start(
        Machine(
            key=name,
            name=item["name"],
            zone=item["zone"].rpartition("/")[2],
            metadata=metadata_of(item),
            account=accounts[0]["email"] if accounts else "",
            id=item["id"],
            machine_type=item["machineType"].rpartition("/")[2],
            gpu=gpus[0]["acceleratorType"].rpartition("/")[2] if gpus else "",
            gpus=int(gpus[0]["acceleratorCount"]) if gpus else 0,
            driver=_has_driver(call, item),
        )
    )
    started = item["lastStartTimestamp"]

    def is_on() -> bool:
        return call.find(key) is item and item["status"] == "RUNNING" and item["lastStartTimestamp"] == started

    def off() -> None:
        if is_on():
            end_instance(call, key, item)

    world.pending.append(Pending("", 0, off, lambda: not is_on() or not world.guests.running(name)))
    if (seconds := _limit(item)) is not None:
        later(world, seconds, lambda: leave(call, key, item) if is_on() else None)
    tell(call, key, "running")


def _has_driver(call: Call, item: Json) -> bool:
    disk = source_of(call, next((each for each in item["disks"] if each["boot"]), {})) or {}
    project = disk.get("sourceImage", "").partition("/projects/")[2].partition("/")[0]
    asked = metadata_of(item).get("install-nvidia-driver", "").lower() == "true"
    return {"built-in": True, "asked": asked}.get(driver_of(project), False)


def _limit(item: Json) -> float | None:
    """Return the seconds that the instance may run. The sandbox does not enforce Google's minimum of 30, which a test
    would have to wait for. Source: https://cloud.google.com/compute/docs/instances/limit-vm-runtime."""
    asked = item["scheduling"]
    if most := asked.get("maxRunDuration"):
        return int(most.get("seconds", 0)) + int(most.get("nanos", 0)) / 1e9
    if end := asked.get("terminationTime"):
        return max(0.0, datetime.fromisoformat(end).timestamp() - time.time())
    return None


def stopping(call: Call, key: str, item: Json) -> None:
    if item.get("status") in ("PROVISIONING", "STAGING", "RUNNING"):
        item["status"] = "STOPPING"
    call.world.guests.stop(f"compute/{key}")


def end_instance(call: Call, key: str, item: Json) -> None:
    call.world.guests.stop(f"compute/{key}")
    item |= {"status": "TERMINATED", "lastStopTimestamp": stamp()}
    item.pop("resourceStatus", None)
    tell(call, key, "terminated")


def remove_instance(call: Call, key: str, item: Json) -> None:
    call.world.guests.stop(f"compute/{key}")
    free(call, key, item)
    verbs.forget(call, key)
    tell(call, key, "gone")


def leave(call: Call, key: str, item: Json) -> None:
    """Stop or delete an instance, as its own scheduling says, after a preemption or at the end of its time."""
    stopping(call, key, item)
    _end(call, key, item)


def _end(call: Call, key: str, item: Json) -> None:
    delete = item["scheduling"].get("instanceTerminationAction") == "DELETE"

    def end() -> None:
        if call.find(key) is item:
            (remove_instance if delete else end_instance)(call, key, item)

    later(call.world, call.world.settle_s, end, lambda: not call.world.guests.running(f"compute/{key}"))


def preempt(world: World, key: str) -> None:
    """Raise ApiError for an unknown instance, and for one that does not run or is not Spot."""
    call = of_instance(world, key)
    item = call.find(key)
    if item is None:
        raise ApiError(404, f"The resource '{key}' was not found")
    if item["status"] != "RUNNING" or not item["scheduling"]["preemptible"]:
        raise ApiError(400, f"sandbox: {item['name']} is no Spot instance that runs: it is {item['status']}")
    item["status"] = "STOPPING"
    world.guests.preempt(f"compute/{key}", NOTICE_S)
    event(call, "compute.instances.preempted", "Instance was preempted.")
    _end(call, key, item)


def check_reservation(call: Call, item: Json) -> None:
    """Take the place in a reservation that the instance names, or that fits it. Source:
    https://cloud.google.com/compute/docs/instances/reservations-consume. The words for a reservation that is full or
    does not fit are ours: Google's are not known."""
    affinity, zone = item["reservationAffinity"], f"projects/{call.path['project']}/zones/{call.path['zone']}"
    kind = affinity.get("consumeReservationType", "ANY_RESERVATION")
    if kind == "NO_RESERVATION" or item["scheduling"]["preemptible"]:
        return
    known = call.world.below("compute", f"{zone}/reservations")
    if kind == "SPECIFIC_RESERVATION":
        (name,) = affinity.get("values", [""])
        name = name.rpartition("/")[2]
        found = next((each for each in known if each["name"] == name), None)
        if found is None:
            raise ApiError(404, f"The resource '{zone}/reservations/{name}' was not found")
        if not found.get("specificReservationRequired"):
            # https://github.com/superserve-ai/sandbox/pull/238
            said = f"Reservation '{name}' can not be targeted as specificReservationRequired is not set."
            raise ApiError(400, said, "invalid")
        if not _fits(call, found, item):
            said = f"The reservation '{name}' has no free place for a {item['machineType'].rpartition('/')[2]}."
            raise ApiError(400, said, "invalid")
    else:
        open_ = (each for each in known if not each.get("specificReservationRequired") and _fits(call, each, item))
        found = next(open_, None)
    if found:
        item["resourceStatus"] = {"reservationConsumptionInfo": {"consumedReservation": found["selfLink"]}}


def _fits(call: Call, reservation: Json, item: Json) -> bool:
    sku = reservation.get("specificReservation", {})
    kind = sku.get("instanceProperties", {}).get("machineType", "").rpartition("/")[2]
    return kind == item["machineType"].rpartition("/")[2] and int(sku.get("count", 0)) > count_instances(
        call, reservation
    )
