"""What the parts of an AWS environment beside its instances cost: NAT gateways, addresses, endpoints, volumes."""

from dataclasses import dataclass
from functools import cache

from accel.catalog.tables import rows


@dataclass(frozen=True, slots=True)
class PartPrice:
    """USD for one unit in an hour or in a month; `source` is a page, `date` when it was current."""

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
    """The price of a nat-gateway, public-ipv4 or interface-endpoint (of one zone) an hour, or of gp3-gib, gp3-iops
    (above 3000) and gp3-mib-s (above 125) a month; None where no figure was seen for the region."""
    return _prices().get((region, item))
