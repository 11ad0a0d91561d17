"""A request for machines with GPUs from a given day, which Google approves or declines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import capacity

from ..base import Component
from ..sdk import gcp
from .capacity_spec import ReservedSpec


class FutureReservationSpec(ReservedSpec):
    """A request. Google stores a draft without review; an approved request is billed from its start."""

    start_time: str = Field(description="Start of the reservation, such as 2027-01-31T08:00:00Z")
    end_time: str | None = Field(default=None, description="End of the reservation, in place of duration_s")
    duration_s: int | None = Field(default=None, ge=1)
    mode: Literal["DEFAULT", "CALENDAR"] = Field(
        default="DEFAULT",
        description="Reservation mode. CALENDAR: machines end with the reservation, after 90 days at most, and prices "
        "differ",
    )
    deployment: Literal["DENSE", "FLEXIBLE"] | None = Field(
        default=None, description="Deployment type. DENSE: machines close together"
    )
    maintenance: Literal["GROUPED", "INDEPENDENT"] | None = Field(
        default=None, description="Scheduling of host maintenance. Default: Google's"
    )
    planning_status: Literal["DRAFT", "SUBMITTED"] = "DRAFT"
    i_understand_this_is_a_purchase: bool = Field(
        default=False, description="Confirm the purchase; required to submit the request"
    )
    reservation_name: str | None = Field(
        default=None, description="Name of the reservation that is delivered. Default: the key of the request"
    )
    name_prefix: str | None = Field(
        default=None,
        max_length=20,
        description="Prefix of the name of the reservation that is delivered, in place of reservation_name",
    )
    auto_delete: bool | None = Field(
        default=None,
        description="Delete the delivered reservation at the end. false: it stays, and is billed. Default: Google's",
    )

    def check(self) -> list[Finding]:
        found = super().check()
        when = capacity.window(self.start_time, self.end_time, self.duration_s)
        found += when + capacity.delivered_name(self.reservation_name, self.name_prefix)
        found += capacity.binding(self.planning_status, self.i_understand_this_is_a_purchase)
        if any(each.severity == "reject" for each in found):
            return found
        found += capacity.attached_gpus(self.machine)
        return found + capacity.calendar(self.mode, self.machine, self.start_time, self.end_time, self.duration_s)


@dataclass(frozen=True, kw_only=True)
class FutureReservationArgs:
    """The spec and its owner."""

    spec: FutureReservationSpec
    project: str


class FutureReservation(Component):
    """A future reservation. The update ends when it is requested, not when it is approved. Google permits changes until
    the lock time, and never the cancelling of what it approved in calendar mode. Deletion leaves what was delivered."""

    TYPE = "accel:gcp:FutureReservation"

    name: pulumi.Output[str]
    zone: pulumi.Output[str]
    machine_type: pulumi.Output[str]
    count: pulumi.Output[int]
    reservation: pulumi.Output[str]
    """Name of the reservation that it delivers, or the beginning of that name where there is a prefix."""

    def __init__(self, name: str, args: FutureReservationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        delivered = None if spec.name_prefix else spec.reservation_name or name
        made = gcp.compute.FutureReservation(
            name,
            project=args.project,
            zone=spec.zone,
            description=spec.description,
            planning_status=spec.planning_status,
            reservation_mode=None if spec.mode == "DEFAULT" else spec.mode,
            deployment_type=spec.deployment,
            scheduling_type=spec.maintenance,
            reservation_name=delivered,
            name_prefix=spec.name_prefix,
            specific_reservation_required=spec.specific,
            auto_delete_auto_created_reservations=spec.auto_delete,
            **_parts(spec),
            opts=self.child(protect=spec.protect),
        )
        self.name = made.name
        self.zone = pulumi.Output.from_input(spec.zone)
        self.machine_type = pulumi.Output.from_input(spec.machine)
        self.count = pulumi.Output.from_input(spec.count)
        self.reservation = pulumi.Output.from_input(delivered or spec.name_prefix or "")
        self.finish()


def _parts(spec: FutureReservationSpec) -> dict[str, Any]:
    properties = dict(spec.properties)
    if disks := properties.get("local_ssds"):
        # One API has a number here and the other text.
        properties["local_ssds"] = [{**disk, "disk_size_gb": str(disk["disk_size_gb"])} for disk in disks]
    window: dict[str, Any] = {"start_time": spec.start_time, "end_time": spec.end_time}
    if spec.duration_s:
        window["duration"] = {"seconds": str(spec.duration_s)}
    sku = {"total_count": str(spec.count), "instance_properties": properties}
    return {"time_window": window, "specific_sku_properties": sku, **spec.sharing}
