"""What a commitment for machines with GPUs costs on Google Cloud against the same machines on demand.

Both figures of a line are of one list and one day, so that their ratio holds also where prices have moved since.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from accel.catalog.machines import Machine
from accel.catalog.machines import machine as machine_named
from accel.catalog.tables import Row, rows

HOURS_A_MONTH = 730
"""Of the list's months: https://cloud.google.com/compute/vm-instance-pricing."""

MONTHS = {"TWELVE_MONTH": 12, "THIRTY_SIX_MONTH": 36}
_COLUMNS = {"TWELVE_MONTH": "one_year_usd_month", "THIRTY_SIX_MONTH": "three_year_usd_month"}


@dataclass(frozen=True, slots=True)
class CommitmentPrice:
    """USD an hour of one machine, on demand and committed, on the day `date` of the list `source`."""

    on_demand: float
    committed: float
    source: str
    date: str

    @property
    def break_even(self) -> float:
        """The share of all hours that the machine has to run, from which on the commitment is the cheaper one."""
        return self.committed / self.on_demand

    @property
    def saving(self) -> float:
        """The share of the on-demand price that is saved where the machine runs always."""
        return 1 - self.break_even


@cache
def _lines() -> dict[str, dict[str, Row]]:
    """The lines by region and machine."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows("gcp_commitments.csv"):
        found.setdefault(row["region"], {})[row["machine"]] = row
    return found


def commitment_price(machine: str, region: str, plan: str) -> CommitmentPrice | None:
    """What one machine costs; None where no figure was seen for it there. What is a multiple of another machine in
    every resource is priced as that many of it, since Google prices resources. Raises UnknownName."""
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
    """How many of `one` are `wanted`; 0 where it is no multiple of it."""
    if wanted.name == one.name:
        return 1
    if (wanted.accelerator, wanted.family) != (one.accelerator, one.family):
        return 0
    times = wanted.accelerator_count / one.accelerator_count
    each = [(wanted.vcpus, one.vcpus), (wanted.memory_mib, one.memory_mib), (wanted.local_ssd_gb, one.local_ssd_gb)]
    return times if all(many == (few or 0) * times for many, few in each) else 0
