"""One maker for each component of capacity, for tests and laws."""

from collections.abc import Callable

from pydantic import TypeAdapter

from components.base import Component
from components.gcp.commitment import Commitment, CommitmentArgs, CommitmentSpec
from components.gcp.future_reservation import FutureReservation, FutureReservationArgs, FutureReservationSpec
from components.gcp.placement import AnyPlacement, Placement, PlacementArgs
from components.gcp.reservation import Reservation, ReservationArgs, ReservationSpec
from tests.support.gcp import PROJECT

ZONE = "us-central1-a"
START = "2035-01-01T00:00:00Z"
LINK = f"projects/{PROJECT}/zones/{ZONE}/reservations/a100"
PLACEMENTS: TypeAdapter[AnyPlacement] = TypeAdapter(AnyPlacement)


def reservation_spec(**values: object) -> ReservationSpec:
    return ReservationSpec.model_validate({"zone": ZONE, "machine_type": "a2-highgpu-8g", "count": 2, **values})


def future_spec(**values: object) -> FutureReservationSpec:
    given = {"machine_type": "a3-highgpu-8g", "count": 4, "start_time": START, "duration_s": 604_800, **values}
    return FutureReservationSpec.model_validate({"zone": ZONE, **given})


def placement_spec(**values: object) -> AnyPlacement:
    return PLACEMENTS.validate_python({"kind": "compact", "region": "us-central1", **values})


def commitment_spec(**values: object) -> CommitmentSpec:
    given = {"region": "us-central1", "plan": "TWELVE_MONTH", "i_understand_this_is_a_purchase": True}
    what = {} if "resources" in values else {"machine_type": "a2-highgpu-8g", "count": 2, "reservation": LINK}
    return CommitmentSpec.model_validate({**given, **what, **values})


def reservation(name: str, **values: object) -> Reservation:
    return Reservation(name, ReservationArgs(spec=reservation_spec(**values), project=PROJECT))


def future_reservation(name: str, **values: object) -> FutureReservation:
    return FutureReservation(name, FutureReservationArgs(spec=future_spec(**values), project=PROJECT))


def placement(name: str, **values: object) -> Placement:
    return Placement(name, PlacementArgs(spec=placement_spec(**values), project=PROJECT))


def commitment(name: str, **values: object) -> Commitment:
    spec = commitment_spec(**values)
    return Commitment(name, CommitmentArgs(spec=spec, project=PROJECT, reservation=spec.reservation))


MAKERS: dict[str, Callable[[str], Component]] = {
    "reservation": reservation,
    "future-reservation": future_reservation,
    "placement": placement,
    "placement-workload": lambda name: placement(name, kind="workload", distance="BLOCK"),
    "commitment": commitment,
    "commitment-unpriced": lambda name: commitment(
        name, resources={"vcpus": 4, "memory_mib": 4096}, type="GENERAL_PURPOSE"
    ),
}
