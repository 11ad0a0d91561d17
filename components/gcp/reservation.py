"""Machines with GPUs that are kept in one zone, and billed whether they are used or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import capacity

from ..base import Component
from ..sdk import gcp
from .capacity_spec import ReservedSpec

AFFINITY_KEY = "compute.googleapis.com/reservation-name"


class ReservationSpec(ReservedSpec):
    """An on-demand reservation: created at once, or refused where there are no such machines."""

    delete_at: str | None = Field(
        default=None, description="Time at which Google deletes the reservation, such as 2027-01-31T08:00:00Z"
    )
    delete_after_s: int | None = Field(
        default=None,
        ge=1,
        description="Seconds from its creation until Google deletes the reservation, in place of delete_at",
    )

    def check(self) -> list[Finding]:
        return super().check() + capacity.end(self.delete_at, self.delete_after_s)


@dataclass(frozen=True, kw_only=True)
class ReservationArgs:
    """The spec and its owner."""

    spec: ReservationSpec
    project: str


class Reservation(Component):
    """A reservation under the component's own name, which machines refer to. Only the number can change in place; any
    other change deletes and recreates it, and nothing is reserved in between."""

    TYPE = "accel:gcp:Reservation"

    name: pulumi.Output[str]
    path: pulumi.Output[str]
    """projects/<p>/zones/<z>/reservations/<name>."""
    link: pulumi.Output[str]
    zone: pulumi.Output[str]
    machine_type: pulumi.Output[str]
    count: pulumi.Output[int]
    affinity: pulumi.Output[dict[str, Any]]
    """`reservationAffinity` of a VM or a node pool that consumes it: `type`, and if the reservation has to be named,
    `key` and `values`."""

    def __init__(self, name: str, args: ReservationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        made = gcp.compute.Reservation(
            name,
            name=name,
            project=args.project,
            zone=spec.zone,
            description=spec.description,
            specific_reservation_required=spec.specific,
            delete_at_time=spec.delete_at,
            **_parts(spec),
            # Machines refer to it by name, so the new one needs the name of the old one.
            opts=self.child(protect=spec.protect, delete_before_replace=True),
        )
        self.name = made.name
        self.path = made.id
        self.link = made.self_link
        self.zone = pulumi.Output.from_input(spec.zone)
        self.machine_type = pulumi.Output.from_input(spec.machine)
        self.count = pulumi.Output.from_input(spec.count)
        self.affinity = made.name.apply(lambda known: affinity(known, spec, args.project))
        self.finish()


def _parts(spec: ReservationSpec) -> dict[str, Any]:
    said = {"specific_reservation": {"count": spec.count, "instance_properties": spec.properties}, **spec.sharing}
    if spec.delete_after_s:
        said["delete_after_duration"] = {"seconds": str(spec.delete_after_s)}
    return said


def affinity(name: str, spec: ReservationSpec, project: str) -> dict[str, Any]:
    """Return the affinity. A shared reservation is named with its project. Source:
    https://docs.cloud.google.com/compute/docs/instances/reservations-consume."""
    if not spec.specific:
        return {"type": "ANY_RESERVATION"}
    value = f"projects/{project}/reservations/{name}" if spec.share_with else name
    return {"type": "SPECIFIC_RESERVATION", "key": AFFINITY_KEY, "values": [value]}
