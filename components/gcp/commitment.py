"""A purchase: machines in a region at a lower price for one or three years, used or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pulumi
from pydantic import Field

from accel.catalog import accelerator as accelerator_named
from accel.catalog import machine as machine_named
from accel.catalog.gcp_commitments import commitment_price
from accel.diagnostics.findings import Finding
from accel.rules.gcp import capacity, commitments, machines

from ..base import Component, Spec
from ..sdk import gcp

UNKNOWN = "unknown"
Plan = Literal["TWELVE_MONTH", "THIRTY_SIX_MONTH"]


class CommittedResourcesSpec(Spec):
    """The committed resources where no machine type implies them, such as N1 with attached GPUs."""

    vcpus: int | None = Field(default=None, ge=1)
    memory_mib: int | None = Field(default=None, ge=256)
    accelerators: dict[str, int] = Field(
        default_factory=dict[str, int], description="Number of accelerators, by Google's name of their type"
    )
    local_ssd_gib: int | None = Field(default=None, ge=375)


class CommitmentSpec(Spec):
    """Machines of one type and their number, or resources and the type of the commitment."""

    region: str
    plan: Plan
    i_understand_this_is_a_purchase: bool = Field(
        default=False, description="Confirm the purchase; without it, nothing is bought"
    )
    machine_type: str | None = Field(default=None, description="Machine type to commit to, in place of resources")
    count: int | None = Field(default=None, ge=1, description="Number of machines")
    resources: CommittedResourcesSpec = CommittedResourcesSpec()
    type: str | None = Field(
        default=None, description="Commitment type, such as GRAPHICS_OPTIMIZED. Default: that of the machine type"
    )
    reservation: str | None = Field(
        default=None,
        description="Reservation to attach: a key of the stack's reservations, or the link of another; required for "
        "GPUs and local SSDs",
    )
    auto_renew: bool = Field(default=False, description="Renew the commitment at its end, for the same term")
    description: str | None = None
    spot: bool = Field(default=False, description="Refused if true: Spot VMs get no discount from a commitment")

    @property
    def commitment_type(self) -> str | None:
        return self.type or commitments.commitment_type(self.machine_type or "")

    @property
    def committed(self) -> CommittedResourcesSpec:
        if self.machine_type is None:
            return self.resources
        one, count = machine_named("gcp", self.machine_type), self.count or 1
        gpu = (
            {accelerator_named(one.accelerator).gcp_type: round(one.accelerator_count * count)}
            if one.accelerator
            else {}
        )
        return CommittedResourcesSpec(
            vcpus=one.vcpus * count,
            memory_mib=one.memory_mib * count,
            accelerators=gpu,
            local_ssd_gib=round((one.local_ssd_gb or 0) * count) if one.local_ssd_mode == "bundled" else None,
        )

    def check(self) -> list[Finding]:
        found = commitments.purchase(self.i_understand_this_is_a_purchase, self.plan)
        found += capacity.spot(self.spot, "commitment")
        named = machines.machine(self.machine_type) if self.machine_type else []
        named += commitments.commitment_series(self.machine_type, self.type)
        given = self.resources
        named += commitments.resources(
            self.count,
            {
                "vcpus": given.vcpus,
                "memory_mib": given.memory_mib,
                "accelerators": sum(given.accelerators.values()),
                "local_ssd_gib": given.local_ssd_gib,
            },
            self.machine_type,
        )
        found += named
        if any(each.severity == "reject" for each in named):
            return found
        needed = bool(self.committed.accelerators or self.committed.local_ssd_gib)
        return found + commitments.attached_reservation(self.reservation, needed=needed)


@dataclass(frozen=True, kw_only=True)
class CommitmentArgs:
    """The spec, its owner, and the link of the reservation that the spec names."""

    spec: CommitmentSpec
    project: str
    reservation: pulumi.Input[str] | None = None


class Commitment(Component):
    """A resource-based commitment. The update that creates it buys it, and none can be deleted before its end: one that
    Pulumi no longer manages is still paid for, so it is protected. Pulumi refuses changes: each would buy another."""

    TYPE = "accel:gcp:Commitment"

    name: pulumi.Output[str]
    region: pulumi.Output[str]
    plan: pulumi.Output[str]
    saving: pulumi.Output[float | str]
    """Share of the on-demand price that machines save if they always run; or unknown."""
    break_even: pulumi.Output[float | str]
    """Share of all hours above which it is cheaper than on demand; or unknown."""

    def __init__(self, name: str, args: CommitmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        pulumi.log.warn(purchase_summary(spec), self)
        made = gcp.compute.RegionCommitment(
            name,
            project=args.project,
            region=spec.region,
            plan=spec.plan,
            category="MACHINE",
            type=spec.commitment_type,
            resources=_resources(spec.committed),
            existing_reservations=args.reservation,
            auto_renew=spec.auto_renew,
            description=spec.description,
            # Google deletes none: a deletion would only forget it, and a replacement would buy a second one.
            opts=self.child(protect=True, retain_on_delete=True),
        )
        price = commitment_price(spec.machine_type, spec.region, spec.plan) if spec.machine_type else None
        self.name = made.name
        self.region = pulumi.Output.from_input(spec.region)
        self.plan = pulumi.Output.from_input(spec.plan)
        self.saving = pulumi.Output.from_input(round(price.saving, 4) if price else UNKNOWN)
        self.break_even = pulumi.Output.from_input(round(price.break_even, 4) if price else UNKNOWN)
        self.finish()


def purchase_summary(spec: CommitmentSpec) -> str:
    years = {"TWELVE_MONTH": "one year", "THIRTY_SIX_MONTH": "three years"}[spec.plan]
    price = commitment_price(spec.machine_type, spec.region, spec.plan) if spec.machine_type else None
    first = f"this buys a commitment of {years} in {spec.region}, which cannot be cancelled"
    if price is None or spec.count is None:
        return f"{first}; what it costs, and when it pays, is {UNKNOWN} here: look at Google's price list"
    now, then = price.on_demand * spec.count, price.committed * spec.count
    return (
        f"{first}: {spec.count} {spec.machine_type} at ${then:,.2f} an hour, used or not, against ${now:,.2f} on demand"
        f" (list of {price.date}); it pays where they run for more than {price.break_even:.1%} of all hours,"
        f" and saves {price.saving:.1%} where they always run"
    )


def _resources(spec: CommittedResourcesSpec) -> list[gcp.compute.RegionCommitmentResourceArgs]:
    plain = {"VCPU": spec.vcpus, "MEMORY": spec.memory_mib, "LOCAL_SSD": spec.local_ssd_gib}
    made = [
        gcp.compute.RegionCommitmentResourceArgs(type=kind, amount=str(amount))
        for kind, amount in plain.items()
        if amount
    ]
    for name, amount in spec.accelerators.items():
        made.append(
            gcp.compute.RegionCommitmentResourceArgs(type="ACCELERATOR", amount=str(amount), accelerator_type=name)
        )
    return made
