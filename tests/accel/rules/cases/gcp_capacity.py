"""Reservations, placement policies and commitments."""

from accel.rules import Finding
from accel.rules.gcp import capacity, commitments

from .case import Case

START = "2035-01-01T00:00:00Z"
A100, L4 = ("us-central1-a", "a2-highgpu-8g"), ("us-central1-a", "g2-standard-8")


def window(until: str | None = None, duration_s: int | None = None) -> list[Finding]:
    return capacity.window(START, until, duration_s)


def calendar(machine_type: str, duration_s: int) -> list[Finding]:
    return capacity.calendar("CALENDAR", machine_type, START, None, duration_s)


def placed(kind: str, zone: str) -> list[Finding]:
    at = "gpus.vm.placement"
    return capacity.placement(kind, "us-central1", [zone], "a2-highgpu-8g", "near", at, group=False)


def resources(**given: int | None) -> list[Finding]:
    return commitments.resources(None, given, None)


CASES = [
    Case(
        "gcp.reservation.spot", "spot", ("true", "commitment"), "leave it out",
        lambda: capacity.spot(True, "commitment"), lambda: capacity.spot(False, "commitment"),
    ),
    Case(
        "gcp.reservation.end", "delete_at", ("2035", "is 60"), "leave one out",
        lambda: capacity.end(START, 60), lambda: capacity.end(START, None),
    ),
    Case(
        "gcp.reservation.time", "delete_at", ("2035-01-01",), "2027-01-31T08:00:00Z",
        lambda: capacity.end("2035-01-01", None), lambda: capacity.end("2035-01-01T00:00:00+01:00", None),
    ),
    Case(
        "gcp.reservation.share", "share_with", ("names team twice",), "once",
        lambda: capacity.share(["team", "other", "team"]), lambda: capacity.share(["team", "other"]),
    ),
    Case(
        "gcp.reservation.use", "gpus.vm.reservation.name",
        ("is kept, of a2-highgpu-8g in us-central1-a, and this is g2-standard-8 in us-central1-a",), "another",
        lambda: capacity.use(L4, A100, "kept", "gpus.vm.reservation.name"),
        lambda: capacity.use(A100, A100, "kept", "gpus.vm.reservation.name"),
    ),
    Case(
        "gcp.future-reservation.attached", "machine_type", ("n1-standard-8", "attached"), "built in",
        lambda: capacity.attached_gpus("n1-standard-8"), lambda: capacity.attached_gpus("a2-highgpu-8g"),
    ),
    Case(
        "gcp.future-reservation.window", "duration_s", ("86399",), "86400 s or more",
        lambda: window(duration_s=86_399), lambda: window("2035-01-02T00:00:00Z"),
    ),
    Case(
        "gcp.future-reservation.calendar", "mode", ("a2-highgpu-8g",), "a3, a4",
        lambda: calendar("a2-highgpu-8g", 86_400), lambda: calendar("a3-highgpu-8g", 7_776_000),
    ),
    Case(
        "gcp.future-reservation.name", "reservation_name", ("is one", "beside name_prefix two"), "leave one out",
        lambda: capacity.delivered_name("one", "two"), lambda: capacity.delivered_name(None, "two"),
    ),
    Case(
        "gcp.future-reservation.purchase", "planning_status", ("SUBMITTED", "binds"), "DRAFT",
        lambda: capacity.binding("SUBMITTED", False), lambda: capacity.binding("DRAFT", False),
    ),
    Case(
        "gcp.placement.distance", "distance", ("BLOCK", "1x72"), "leave one out",
        lambda: capacity.workload("BLOCK", "1x72"), lambda: capacity.workload(None, "1x72"),
    ),
    Case(
        "gcp.placement.use", "gpus.vm.placement", ("is near", "workload policy"), "compact or spread",
        lambda: placed("workload", "us-central1-a"), lambda: placed("compact", "us-central1-a"),
    ),
    Case(
        "gcp.placement.unknown", "gpus.vm.placement", ("naer",), "use near",
        lambda: capacity.placement_name("naer", ["near"], "gpus.vm.placement"),
        lambda: capacity.placement_name("projects/p/regions/r/resourcePolicies/naer", ["near"], ""),
    ),
    Case(
        "gcp.commitment.purchase", "i_understand_this_is_a_purchase", ("three years",), "write true",
        lambda: commitments.purchase(False, "THIRTY_SIX_MONTH"),
        lambda: commitments.purchase(True, "THIRTY_SIX_MONTH"),
    ),
    Case(
        "gcp.commitment.series", "machine_type", ("a4x-highgpu-4g", "no commitment"), "a3-megagpu",
        lambda: commitments.commitment_series("a4x-highgpu-4g", None),
        lambda: commitments.commitment_series("a4-highgpu-8g", None),
    ),
    Case(
        "gcp.commitment.resources", "resources.memory_mib", ("is 4000",), "write 3840",
        lambda: resources(vcpus=1, memory_mib=4000), lambda: resources(vcpus=1, memory_mib=3840),
    ),
    Case(
        "gcp.commitment.reservation", "reservation", ("missing", "GPUs"), "name the reservation",
        lambda: commitments.attached_reservation(None, needed=True),
        lambda: commitments.attached_reservation(None, needed=False),
    ),
]  # fmt: skip
