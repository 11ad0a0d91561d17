"""Routes of subnets, as EC2 answers them."""

from typing import Any

from .responses import structures


def default_route(tables: list[dict[str, Any]], subnet: str, vpc: str) -> str:
    """The target of a subnet's default route, "" where it has none that works."""
    own = [each for each in tables if any(row.get("SubnetId") == subnet for row in structures(each, "Associations"))]
    main = [
        each
        for each in tables
        if each.get("VpcId") == vpc and any(row.get("Main") for row in structures(each, "Associations"))
    ]
    for route in structures((own or main or [{}])[0], "Routes"):
        everywhere = (route.get("DestinationCidrBlock"), route.get("DestinationIpv6CidrBlock"))
        if route.get("State") != "blackhole" and ("0.0.0.0/0" in everywhere or "::/0" in everywhere):
            # A NAT gateway, an internet gateway, a transit gateway, an instance, a peering, ...
            return next((str(value) for key, value in route.items() if key.endswith("Id") and value), "?")
    return ""
