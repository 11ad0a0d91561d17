"""Policies on the maximum size of the whole stack."""

from collections.abc import Iterable, Iterator

from accel.cost import total

from ..capacity import MAKERS, Capacity, capacities
from ..guard import Settings, StackPolicy
from ..resource import Resource, UnknownValue

SHOWN = 5
"""Number of resources that a message names."""


class _Sum:
    """The total of the resources, and those of them that could not be counted."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.parts: list[tuple[str, Capacity]] = []
        self.strange: list[str] = []
        self.unseen: UnknownValue | None = None
        for resource in resources:
            if resource.type not in MAKERS:
                continue
            try:
                self.parts += [(resource.name, each) for each in capacities(resource)]
            except UnknownValue as unseen:
                self.unseen = UnknownValue(f"{resource.name}: {unseen.path}")
            except LookupError as unknown:  # a machine that the catalogue does not have
                self.strange.append(f"{resource.name} ({unknown})")

    @property
    def more(self) -> str:
        return f"; not counted: {', '.join(self.strange)}" if self.strange else ""

    def largest(self, of: dict[str, float]) -> str:
        names = sorted(of, key=lambda name: (-of[name], name))
        return ", ".join(f"{name} {of[name]:g}" for name in names[:SHOWN] if of[name])

    def rest(self) -> Iterator[str]:
        """Yield what was not counted in a sum not above its maximum. Raise UnknownValue where a value is not known."""
        if self.strange:
            yield f"cannot be told, since the catalogue does not have the machines of {', '.join(self.strange)}"
        if self.unseen:
            raise self.unseen


def _accelerators(resources: list[Resource], settings: Settings) -> Iterator[str]:
    found = _Sum(resources)
    by_name = {name: float(each.accelerators) for name, each in found.parts}
    count = sum(each.accelerators for _, each in found.parts)
    if count > settings["most"]:
        yield (
            f"the stack can come to {count:,} GPUs and TPU chips, more than {settings['most']:,g}: "
            f"{found.largest(by_name)}{found.more}"
        )
    else:
        yield from found.rest()


ACCELERATORS = StackPolicy(
    id="accelerators-maximum",
    severity="high",
    summary="GPUs and TPU chips of the stack, all pools at their maximum, stay below a number",
    fix="lower max_vcpus, max_nodes or size, or have the maximum raised in the policy's config",
    source="https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeResource.html",
    settings={"most": {"type": "integer", "minimum": 0, "description": "without it nothing is counted"}},
    check=_accelerators,
)


def _hourly(resources: list[Resource], settings: Settings) -> Iterator[str]:
    found = _Sum(resources)
    worst = total(each.worst for _, each in found.parts)
    if worst.usd is not None and worst.usd > settings["usd_hour"]:
        by_name = {name: round(each.worst.usd or 0.0, 2) for name, each in found.parts}
        least = "at least " if worst.at_least or found.strange else ""
        yield (
            f"machines of the stack can cost {least}{worst.usd:,.2f} USD an hour on demand, more than "
            f"{settings['usd_hour']:,.2f}: {found.largest(by_name)}{found.more}"
        )
    else:
        yield from found.rest()
        if worst.at_least:
            unpriced = [name for name, each in found.parts if each.worst.at_least]
            yield f"cannot be told, since no price is known for all machines of {', '.join(unpriced)}"


HOURLY = StackPolicy(
    id="hourly-cost-maximum",
    severity="high",
    summary="Machines of the stack, all pools at their maximum and on demand, cost less an hour than an amount",
    fix="lower max_vcpus, max_nodes or size, choose smaller machines, or have the policy's maximum raised",
    source="https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-managing-costs.html",
    settings={"usd_hour": {"type": "number", "minimum": 0, "description": "without it nothing is counted"}},
    check=_hourly,
)


def _spot(resources: list[Resource], settings: Settings) -> Iterator[str]:
    found = _Sum(resources)
    count = sum(each.accelerators for _, each in found.parts)
    paid_full = {name: float(each.accelerators) for name, each in found.parts if not each.spot}
    on_demand = round(sum(paid_full.values()))
    most = settings["on_demand_share"] * count
    if on_demand > most:
        yield (
            f"{on_demand:,} of {count:,} GPUs and TPU chips are on demand, more than a share of "
            f"{settings['on_demand_share']:g}: {found.largest(paid_full)}{found.more}"
        )
    else:
        yield from found.rest()


SPOT = StackPolicy(
    id="spot-first",
    severity="low",
    summary="Most accelerators of an environment for trying things out are Spot",
    fix="set capacity: spot on pools that can be interrupted, and keep on demand as the queue's second choice",
    source="https://docs.aws.amazon.com/batch/latest/userguide/bestpractices6.html",
    settings={
        "on_demand_share": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "of accelerators that may be on demand; without it nothing is counted",
        }
    },
    check=_spot,
)

POLICIES = (ACCELERATORS, HOURLY, SPOT)
