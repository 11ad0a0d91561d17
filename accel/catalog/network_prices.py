"""Prices of the parts of an AWS environment other than instances: NAT gateways, addresses, endpoints, volumes."""

from dataclasses import dataclass
from functools import cache

from accel.catalog.tables import rows

GP3_IOPS, GP3_MIB_S = 3000, 125
"""Performance that a gp3 volume includes. Source:
https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html"""


@dataclass(frozen=True, slots=True)
class PartPrice:
    """USD for one unit per hour or month; `source` is a page, `date` when it was current."""

    usd: float
    unit: str
    source: str
    date: str
    confidence: str


@cache
def _prices() -> dict[tuple[str, str], PartPrice]:
    return {
        (row["region"], row["item"]): PartPrice(
            row.figure("usd"), row["unit"], row["source"], row["snapshot"], row["confidence"]
        )
        for row in rows("aws_network_prices.csv")
    }


def part_price(region: str, item: str) -> PartPrice | None:
    """Return None if no figure is known. nat-gateway, public-ipv4 and interface-endpoint (per zone) are priced by the
    hour; gp3-gib, gp3-iops (above GP3_IOPS) and gp3-mib-s (above GP3_MIB_S) by the month."""
    return _prices().get((region, item))
