"""Instances that work as one machine: a cluster placement group, and Elastic Fabric Adapters (EFA) between them."""

from collections.abc import Sequence

from accel.catalog import Machine
from accel.diagnostics.findings import Finding
from accel.rules.aws import types
from accel.rules.table import rule

SPOT = rule("aws.cluster.spot")
ZONES = rule("aws.cluster.zones")
EFA_UNSUPPORTED = rule("aws.efa.unsupported")
EFA_MIXED = rule("aws.efa.mixed-types")
EFA_PLACEMENT = rule("aws.efa.placement")

PLAIN_FIRST_CARD = ("p6-b300",)
"""Families whose network card 0 has no EFA. Source: https://github.com/aws/aws-parallelcluster/issues/7143"""


def efa_cards(instance_types: Sequence[str]) -> tuple[int, ...]:
    """Return an empty tuple unless all of the types and families have EFA on the same cards."""
    layouts = {_cards(machine) for _, machine in types.find_machines(instance_types)}
    return next(iter(layouts)) if len(layouts) == 1 else ()


def _cards(machine: Machine) -> tuple[int, ...]:
    first = 1 if machine.family in PLAIN_FIRST_CARD else 0
    return tuple(range(first, first + machine.efa_interfaces))


def cluster(
    *, kind: str, placement: str | None, efa: bool, instance_types: Sequence[str], in_block: bool = False
) -> list[Finding]:
    """Check placement and EFA. `in_block`: the instances are in a Capacity Block, which is a cluster."""
    field = "placement" if placement else "efa"
    if not placement and not efa:
        return []
    if kind == "SPOT":
        message = "is for multi-node jobs, which do not run on Spot instances"
        return [SPOT.finding(field, message, "use capacity: on-demand, or leave it out")]
    found = _efa(instance_types) if efa else []
    if efa and not placement and not in_block:
        message = "is true without a cluster placement group, in which all instances with EFA have to be"
        found.append(EFA_PLACEMENT.finding("efa", message, "add placement: cluster"))
    return found


def _efa(instance_types: Sequence[str]) -> list[Finding]:
    field, found = "instance_types", list[Finding]()
    machines = types.find_machines(instance_types)
    for i, machine in machines:
        if not machine.efa_interfaces:
            message = f'is "{instance_types[i]}", and {machine.name} has no EFA'
            found.append(EFA_UNSUPPORTED.finding(f"{field}[{i}]", message, _with_efa(machine)))
    layouts = {_cards(machine): machine.name for _, machine in machines}
    if not found and len(layouts) > 1:
        shown = ", ".join(f"{name} has {len(cards)}" for cards, name in layouts.items())
        message = f"have different EFA interfaces: {shown}"
        found.append(EFA_MIXED.finding(field, message, "give each type an environment of its own"))
    return found[:1]


def _with_efa(machine: Machine) -> str:
    sizes = [each.name for _, each in types.find_machines([machine.family]) if each.efa_interfaces]
    return f"name sizes with EFA: {', '.join(sizes)}" if sizes else "use a type with EFA, such as p4d.24xlarge"


def zones(*, wanted: str | None, count: int) -> list[Finding]:
    """Check for a single zone. `wanted` is the field that needs it, or None; `count` is the number of zones."""
    if wanted is None or count < 2:
        return []
    message = f"lies in one availability zone, and the network has {count}: most launches would fail"
    return [ZONES.finding(wanted, message, "name one in zone")]
