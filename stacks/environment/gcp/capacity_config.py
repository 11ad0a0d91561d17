"""Capacity in the `vms` part of the `gcp` section: reservations, placements and commitments."""

from collections.abc import Iterator

from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import capacity
from accel.rules.gcp import commitments as gcp_commitments
from components.base import Name, Spec
from components.gcp.commitment import CommitmentSpec
from components.gcp.future_reservation import FutureReservationSpec
from components.gcp.gpu_vm_spec import GpuVmSpec
from components.gcp.placement import AnyPlacement
from components.gcp.reservation import ReservationSpec


class Capacity(Spec):
    """The capacity of a stack. The key of a reservation is its name."""

    reservations: dict[Name, ReservationSpec] = Field(
        default_factory=dict[str, ReservationSpec],
        description="GPU machines that are reserved, and billed, whether they are used or not",
    )
    future_reservations: dict[Name, FutureReservationSpec] = Field(
        default_factory=dict[str, FutureReservationSpec], description="Requests for GPU machines from a given day"
    )
    placements: dict[Name, AnyPlacement] = Field(
        default_factory=dict[str, AnyPlacement], description="Placement policies: how close to each other machines are"
    )
    commitments: dict[Name, CommitmentSpec] = Field(
        default_factory=dict[str, CommitmentSpec], description="Purchases for one or three years"
    )

    def workload_policy(self, placement: str | None) -> bool:
        """Return whether it is a policy of groups, and not of single VMs."""
        found = self.placements.get(placement or "")
        return found is not None and found.kind == "workload"

    def of_commitments(self) -> Iterator[Finding]:
        for key, spec in self.commitments.items():
            name, field = spec.reservation, f"commitments.{key}.reservation"
            if name is None:
                continue
            yield from gcp_commitments.known_reservation(name, list(self.reservations), field)
            if name in self.reservations:
                yield from gcp_commitments.attached_region(spec.region, self.reservations[name].zone, name, field)

    def of_machine(self, spec: GpuVmSpec, at: str, *, group: bool) -> Iterator[Finding]:
        reserved = self.reservations.get(spec.reservation.name) if spec.reservation else None
        if spec.reservation and reserved and spec.reservation.project is None:
            wanted, here = (spec.zone, spec.machine), (reserved.zone, reserved.machine)
            yield from capacity.use(wanted, here, spec.reservation.name, f"{at}.reservation.name")
        yield from self.of_placement(spec.placement, [spec.zone], spec.machine, f"{at}.placement", group=group)

    def of_target(self, placement: str | None, reservation: str | None, zones: list[str], at: str) -> Iterator[Finding]:
        if reserved := self.reservations.get(reservation or ""):
            yield from capacity.use_zone(zones, reserved.zone, reservation or "", f"{at}.reservation")
        yield from self.of_placement(placement, zones, None, f"{at}.placement", group=False)

    def of_placement(
        self, name: str | None, zones: list[str], machine: str | None, field: str, *, group: bool
    ) -> Iterator[Finding]:
        if name is None:
            return
        yield from capacity.placement_name(name, list(self.placements), field)
        if policy := self.placements.get(name):
            yield from capacity.placement(policy.kind, policy.region, zones, machine, name, field, group=group)
