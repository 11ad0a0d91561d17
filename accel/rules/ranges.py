"""Ranges of IPv4 addresses, as people write them."""

from ipaddress import IPv4Network


def range_fix(cidr: str) -> str:
    """Return what to write in the place of a text that is no range."""
    try:
        return f"write {IPv4Network(cidr, strict=False)}"
    except ValueError:
        return "write an IPv4 range, such as 10.0.0.0/16"
