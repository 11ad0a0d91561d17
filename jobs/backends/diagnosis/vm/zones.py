"""Other zones that are known to have a job's machines, and how the job requests them."""

from accel.catalog import UnknownName
from accel.catalog.places import where
from accel.catalog.tpu import NoSuchSlice, tpu
from accel.diagnostics.messages import first_of
from accel.json_values import entries, object_at, objects_at

from ...vm.record import Record

SHOWN = 6


def request_text(record: Record) -> str:
    """Return what the job requests, in words: `v5litepod-16, Spot`."""
    body = record.body
    machine, reserved = object_at(body, "machine"), reservation(record)
    how = "Spot" if body.get("spot") else f"of reservation {reserved}" if reserved else "on demand"
    if machine.get("wait_s"):
        how = "flex-start"
    slices = int(machine.get("slices") or 1)
    count = slices if record.kind == "tpu-vm" else record.hosts
    return f"{f'{count} x ' if count > 1 else ''}{body['type']}, {how}"


def reservation(record: Record) -> str | None:
    """Return the reservation that the job draws on."""
    machine = object_at(record.body, "machine")
    named = entries(object_at(machine, "properties", "reservationAffinity").get("values"))
    return machine.get("reservation") or next(iter(named), None)


def own(record: Record) -> str:
    return f"its zones are {', '.join(record.body['zones'])}"


def others(record: Record) -> str:
    """Name zones that the catalogue lists for the type and that the job may not use. Return "" if none is known."""
    known = [zone for zone in _known(record) if zone not in record.body["zones"]]
    if not known:
        return ""
    return f"other zones that are known to have {record.body['type']}: {first_of(known, SHOWN)}"


def _known(record: Record) -> list[str]:
    try:
        if record.kind == "tpu-vm":
            places = tpu(str(record.body["type"])).places
        else:
            places = where("gcp", _priced(record))
    except (UnknownName, NoSuchSlice):
        return []
    return sorted({zone for zones in places.values() for zone in zones})


def _priced(record: Record) -> str:
    """Return the catalogue's name: GPUs on N1 machines have rows of their own."""
    attached = objects_at(object_at(record.body, "machine", "properties"), "guestAccelerators")
    if not attached:
        return str(record.body["type"])
    return f"n1+{attached[0]['acceleratorType']}x{attached[0]['acceleratorCount']}"


def hint(record: Record) -> str:
    body = record.body
    found: list[str] = []
    if len(body["zones"]) > 1 and not body.get("zone_wait_s") and record.kind == "tpu-vm":
        found.append("tpu_vm.zone_wait_s makes it move on to its next zone after that time")
    if len(body["zones"]) == 1:
        found.append("more zones in the target")
    if body.get("spot"):
        found.append("spot: false asks for machines that are given first, and stay")
    elif not object_at(body, "machine").get("reservation"):
        found.append("spot: true, or a reservation, draws on other capacity")
    return "wait; quicker may be: " + "; ".join(found) if found else "wait"
