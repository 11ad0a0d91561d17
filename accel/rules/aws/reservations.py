"""On-Demand Capacity Reservations and Capacity Blocks for an environment's instances."""

from collections.abc import Sequence

from accel.diagnostics.findings import Finding
from accel.rules.aws import types
from accel.rules.jobs import placeholders
from accel.rules.table import rule

TARGET = rule("aws.reservation.target")
SPOT = rule("aws.reservation.spot")
ONE_TYPE = rule("aws.reservation.one-type")
BLOCK_TYPE = rule("aws.reservation.block-type")
BLOCK_PLACEMENT = rule("aws.reservation.block-placement")

BLOCK = "capacity-block"
_ARN = "arn:aws:resource-groups:<region>:<account>:group/<name>"


def target(id: str | None, group_arn: str | None) -> list[Finding]:
    if (id is None) == (group_arn is None):
        has = "neither id nor group_arn is given" if id is None else "is given beside group_arn"
        return [TARGET.finding("id", has, "give one of them")]
    if id is not None:
        return placeholders.resource_id("id", id, "cr")
    if ":resource-groups:" in (group_arn or "") and ":group/" in (group_arn or ""):
        return placeholders.account("group_arn", group_arn or "")
    return [TARGET.finding("group_arn", f'is "{group_arn}", which is no ARN of a resource group', f"write {_ARN}")]


def environment(
    *, kind: str, market: str, by_group: bool, instance_types: Sequence[str], placement: str | None = None
) -> list[Finding]:
    """Check a reservation of an environment. `market`: on-demand or capacity-block."""
    field = "capacity_reservation"
    if kind == "SPOT":
        message = "is given, and Spot instances are not launched into one"
        return [SPOT.finding(field, message, "use capacity: on-demand, or leave it out")]
    found: list[Finding] = []
    machines = [machine for _, machine in types.find_machines(instance_types)]
    if len(machines) > 1 and not by_group:
        shown = ", ".join(machine.name for machine in machines[:4])
        message = f"is of one instance type, and instance_types means {len(machines)} ({shown})"
        found.append(ONE_TYPE.finding(field, message, "name the one size that is reserved"))
    if market == BLOCK:
        without = [machine.name for machine in machines if not machine.capacity_block]
        if without:
            message = f"is a Capacity Block, and none is sold of {without[0]}"
            found.append(BLOCK_TYPE.finding(f"{field}.market", message, "write market: on-demand, or use p5.48xlarge"))
        if placement:
            message = "is given for a Capacity Block, whose instances are placed close together already"
            found.append(BLOCK_PLACEMENT.finding("placement", message, "leave it out"))
    return found
