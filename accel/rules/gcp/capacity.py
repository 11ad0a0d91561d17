"""Reserved or purchased capacity of Compute Engine: reservations, now or later, and placement policies."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from accel.catalog.gke_machines import compact_placement, series
from accel.catalog.gpu_attachments import n1
from accel.catalog.nearest import nearest
from accel.diagnostics.findings import Finding, did_you_mean
from accel.rules.table import rule

SPOT = rule("gcp.reservation.spot")
END = rule("gcp.reservation.end")
TIME = rule("gcp.reservation.time")
SHARE = rule("gcp.reservation.share")
USE = rule("gcp.reservation.use")
ATTACHED_GPUS = rule("gcp.future-reservation.attached")
WINDOW = rule("gcp.future-reservation.window")
CALENDAR = rule("gcp.future-reservation.calendar")
NAME = rule("gcp.future-reservation.name")
BINDING = rule("gcp.future-reservation.purchase")
DISTANCE = rule("gcp.placement.distance")
PLACED = rule("gcp.placement.use")
UNKNOWN = rule("gcp.placement.unknown")

CONSENT = "i_understand_this_is_a_purchase"
MOST_PROJECTS = 100
CALENDAR_LONGEST_S = 90 * 24 * 3600
SHORTEST_S = 24 * 3600
_CALENDAR_SERIES = ("a3", "a4", "a4x")
"""Source: reservationMode of https://docs.cloud.google.com/python/docs/reference/google-cloud-compute-v1beta, "A3+"."""


def spot(on: bool, what: str, field: str = "spot") -> list[Finding]:
    return [SPOT.finding(field, f"is true, on a {what}", "leave it out")] if on else []


def _when(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo and "T" in text else None


def time(text: str | None, field: str) -> list[Finding]:
    if text is None or _when(text):
        return []
    return [TIME.finding(field, f'is "{text}", which is no time with a zone', "write one such as 2027-01-31T08:00:00Z")]


def end(at: str | None, after_s: int | None) -> list[Finding]:
    if at is not None and after_s is not None:
        return [END.finding("delete_at", f"is {at}, and delete_after_s is {after_s}", "leave one out")]
    return time(at, "delete_at")


def share(projects: Sequence[str], field: str = "share_with") -> list[Finding]:
    if len(projects) > MOST_PROJECTS:
        return [SHARE.finding(field, f"are {len(projects)} projects", f"name {MOST_PROJECTS} at most")]
    twice = [name for index, name in enumerate(projects) if name in projects[:index]]
    return [SHARE.finding(field, f"names {name} twice", "name it once") for name in twice[:1]]


def use(wanted: tuple[str, str], reserved: tuple[str, str], name: str, field: str) -> list[Finding]:
    if wanted == reserved:
        return []
    message = f"is {name}, of {' in '.join(reversed(reserved))}, and this is {' in '.join(reversed(wanted))}"
    return [USE.finding(field, message, "use its zone and its machine type, or another reservation")]


def use_zone(zones: Sequence[str], zone: str, name: str, field: str) -> list[Finding]:
    if zone in zones:
        return []
    message = f"is {name}, in {zone}, and the target is in {', '.join(zones)}"
    return [USE.finding(field, message, f"add {zone}, or use another reservation")]


def window(start: str, until: str | None, duration_s: int | None) -> list[Finding]:
    """Check a period, but not whether it lies in the future, which Google decides."""
    if (until is None) == (duration_s is None):
        message = "is missing, and so is duration_s" if until is None else f"is {until}, beside duration_s"
        return [WINDOW.finding("end_time", message, "write one of the two")]
    if wrong := time(start, "start_time") + time(until, "end_time"):
        return wrong
    length = _length_s(start, until, duration_s)
    if length < SHORTEST_S:
        field, given = ("end_time", until) if until else ("duration_s", duration_s)
        return [
            WINDOW.finding(field, f"is {given}, which is {length} s after the start", f"take {SHORTEST_S} s or more")
        ]
    return []


def _length_s(start: str, until: str | None, duration_s: int | None) -> int:
    begins, ends = _when(start), _when(until) if until else None
    if begins and ends:
        return int((ends - begins) / timedelta(seconds=1))
    return duration_s or 0


def calendar(mode: str, machine_type: str, start: str, until: str | None, duration_s: int | None) -> list[Finding]:
    if mode != "CALENDAR":
        return []
    found: list[Finding] = []
    if series(machine_type) not in _CALENDAR_SERIES:
        message = f"is CALENDAR, and the machine is {machine_type}"
        found.append(CALENDAR.finding("mode", message, f"use DEFAULT, or a machine of {', '.join(_CALENDAR_SERIES)}"))
    if (length := _length_s(start, until, duration_s)) > CALENDAR_LONGEST_S:
        field = "end_time" if until else "duration_s"
        message = f"is {length} s after the start, in calendar mode"
        found.append(CALENDAR.finding(field, message, f"take {CALENDAR_LONGEST_S} s at most"))
    return found


def attached_gpus(machine_type: str, field: str = "machine_type") -> list[Finding]:
    """Check for attached GPUs: Google rejects the provider's request for them."""
    if n1(machine_type) is None:
        return []
    message = f"is {machine_type}, whose GPUs are attached"
    return [ATTACHED_GPUS.finding(field, message, "use a reservation, or a machine with GPUs built in")]


def delivered_name(name: str | None, prefix: str | None) -> list[Finding]:
    if name is None or prefix is None:
        return []
    return [NAME.finding("reservation_name", f"is {name}, beside name_prefix {prefix}", "leave one out")]


def binding(status: str, consent: bool) -> list[Finding]:
    if status != "SUBMITTED" or consent:
        return []
    fix = f"write {CONSENT}: true, or planning_status: DRAFT"
    return [BINDING.finding("planning_status", "is SUBMITTED, which binds once Google approves it", fix)]


def workload(distance: str | None, topology: str | None) -> list[Finding]:
    if distance is None or topology is None:
        return []
    return [DISTANCE.finding("distance", f"is {distance}, beside topology {topology}", "leave one out")]


def placement(kind: str, region: str, zones: Sequence[str], machine_type: str | None, name: str, field: str,
           *, group: bool) -> list[Finding]:  # fmt: skip
    """Check a policy against what it places. `group`: a managed instance group."""
    outside = [zone for zone in zones if zone.rpartition("-")[0] != region]
    if len(outside) == len(zones):
        return [PLACED.finding(field, f"is {name}, of {region}, and this is in {zones[0]}", "use one of its region")]
    if kind == "workload" and not group:
        return [PLACED.finding(field, f"is {name}, a workload policy", "use one of kind compact or spread")]
    if kind == "compact" and machine_type and compact_placement().get(series(machine_type)) is False:
        able = ", ".join(each for each, takes in compact_placement().items() if takes)
        message = f"is {name}, and {machine_type} cannot be placed close together"
        return [PLACED.finding(field, message, f"use a machine of {able}")]
    return []


def placement_name(name: str, known: Sequence[str], field: str) -> list[Finding]:
    if "/" in name or not known or name in known:
        return []
    return [UNKNOWN.finding(field, f'is "{name}", no key of placements', did_you_mean(nearest(name, known), known))]
