"""The capacity of the `vms` part of the Google Cloud section as components."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.gcp.commitment import Commitment, CommitmentArgs
from components.gcp.future_reservation import FutureReservation, FutureReservationArgs
from components.gcp.placement import Placement, PlacementArgs
from components.gcp.pool_spec import ReservationSpec as Named
from components.gcp.reservation import Reservation, ReservationArgs

from .capacity_config import Capacity
from .vms_config import AnyVmTarget, GceTarget


@dataclass(frozen=True)
class CapacityResources:
    """What machines and targets may name by its key."""

    reservations: Mapping[str, Reservation]
    placements: Mapping[str, Placement]

    def placement(self, name: str | None) -> pulumi.Output[str] | None:
        """The path of the stack's placement of that name."""
        found = self.placements.get(name or "")
        return found.path if found else None

    def of_target(self, spec: AnyVmTarget) -> dict[str, pulumi.Output[str]]:
        """What a target of GPU VMs says by its path where it is the stack's own. (Reservations of TPUs are others.)"""
        if not isinstance(spec, GceTarget):
            return {}
        reserved, placement = self.reservations.get(spec.reservation or ""), self.placement(spec.placement)
        found = {"placement": placement, "reservation": reserved.path if reserved else None}
        return {name: path for name, path in found.items() if path is not None}

    def options(self, reservation: Named | None, on_gcp: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
        """Options of a machine: one that a reservation is kept for is made after it, and given up before it."""
        if reservation is None or reservation.project or reservation.name not in self.reservations:
            return on_gcp
        after = pulumi.ResourceOptions(depends_on=[self.reservations[reservation.name]])
        return pulumi.ResourceOptions.merge(on_gcp, after)


def deploy_capacity(project: str, spec: Capacity, on_gcp: pulumi.ResourceOptions) -> CapacityResources:
    """Makes it, and exports `capacity`: by kind and key, what whoever uses it needs to know."""
    told: dict[str, dict[str, Any]] = {}
    reservations: dict[str, Reservation] = {}
    for key, each in spec.reservations.items():
        kept = reservations[key] = Reservation(key, ReservationArgs(spec=each, project=project), on_gcp)
        told.setdefault("reservations", {})[key] = {
            "name": kept.name,
            "zone": kept.zone,
            "machine_type": kept.machine_type,
            "count": kept.count,
            "affinity": kept.affinity,
        }
    for key, each in spec.future_reservations.items():
        later = FutureReservation(key, FutureReservationArgs(spec=each, project=project), on_gcp)
        told.setdefault("future_reservations", {})[key] = {
            "name": later.name,
            "zone": later.zone,
            "reservation": later.reservation,
        }
    placements: dict[str, Placement] = {}
    for key, each in spec.placements.items():
        policy = placements[key] = Placement(key, PlacementArgs(spec=each, project=project), on_gcp)
        told.setdefault("placements", {})[key] = {"path": policy.path, "kind": policy.kind}
    for key, each in spec.commitments.items():
        of = reservations[each.reservation].link if each.reservation in reservations else each.reservation
        bought = Commitment(key, CommitmentArgs(spec=each, project=project, reservation=of), on_gcp)
        told.setdefault("commitments", {})[key] = {
            "name": bought.name,
            "region": bought.region,
            "plan": bought.plan,
            "saving": bought.saving,
            "break_even": bought.break_even,
        }
    if told:
        pulumi.export("capacity", told)
    return CapacityResources(reservations, placements)
