"""Prices of Google Cloud commitments for machines with GPUs, compared with on demand. Both figures of a line come from
one list on one day, so that their ratio holds even after prices have moved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from accel.catalog.machines import Machine
from accel.catalog.machines import machine as machine_named
from accel.catalog.tables import Row, rows

HOURS_A_MONTH = 730
"""Of the price list: https://cloud.google.com/compute/vm-instance-pricing."""

_COLUMNS = {"TWELVE_MONTH": "one_year_usd_month", "THIRTY_SIX_MONTH": "three_year_usd_month"}


@dataclass(frozen=True, slots=True)
class CommitmentPrice:
    """USD per hour for one machine, on demand and committed, on day `date` of list `source`."""

    on_demand: float
    committed: float
    source: str
    date: str

    @property
    def break_even(self) -> float:
        """Share of all hours that the machine has to run before the commitment is cheaper."""
        return self.committed / self.on_demand

    @property
    def saving(self) -> float:
        """Share of the on-demand price saved if the machine always runs."""
        return 1 - self.break_even


@cache
def _lines() -> dict[str, dict[str, Row]]:
    found: dict[str, dict[str, Row]] = {}
    for row in rows("gcp_commitments.csv"):
        found.setdefault(row["region"], {})[row["machine"]] = row
    return found


def commitment_price(machine: str, region: str, plan: str) -> CommitmentPrice | None:
    """Return None if no figure is known for the region. A machine that is a multiple of another in every resource costs
    as many of the other, since Google prices resources. Raise UnknownName."""
    wanted = machine_named("gcp", machine)
    here = _lines().get(region, {})
    for name in sorted(here, key=lambda name: name != machine):
        if times := _times(wanted, machine_named("gcp", name)):
            row = here[name]
            return CommitmentPrice(
                on_demand=row.figure("on_demand_usd_month") * times / HOURS_A_MONTH,
                committed=row.figure(_COLUMNS[plan]) * times / HOURS_A_MONTH,
                source=row["source"],
                date=row["snapshot"],
            )
    return None


def _times(wanted: Machine, one: Machine) -> float:
    """Return how many of `one` make up `wanted`; 0 if it is no multiple."""
    if wanted.name == one.name:
        return 1
    if (wanted.accelerator, wanted.family) != (one.accelerator, one.family):
        return 0
    times = wanted.accelerator_count / one.accelerator_count
    each = [(wanted.vcpus, one.vcpus), (wanted.memory_mib, one.memory_mib), (wanted.local_ssd_gb, one.local_ssd_gb)]
    return times if all(many == (few or 0) * times for many, few in each) else 0
