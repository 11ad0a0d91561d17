"""The VPC that a stack creates."""

import re
from collections.abc import Sequence
from ipaddress import IPv4Network

from accel.catalog.aws_partitions import partition_of
from accel.diagnostics.findings import Finding
from accel.rules.jobs import containers
from accel.rules.ranges import range_fix
from accel.rules.table import rule

CIDR = rule("aws.network.cidr")
CIDR_SIZE = rule("aws.network.cidr-size")
CIDR_PUBLIC = rule("aws.network.cidr-public")
ZONE_COUNT = rule("aws.network.zone-count")
ZONES = rule("aws.network.zones")

CLOSED_IMAGE = rule("aws.network.closed-image")

_PREFIXES = range(16, 29)
_PRIVATE = tuple(IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))


def network(cidr: str, zones: Sequence[str] | int) -> list[Finding]:
    """Check a range split into equal subnets, one for each zone. `zones`: names, or a number."""
    count = zones if isinstance(zones, int) else len(zones)
    found = _zones(zones, count)
    try:
        block = IPv4Network(cidr)
    except ValueError:
        return [*found, CIDR.finding("cidr", f'is "{cidr}"', range_fix(cidr))]
    if block.prefixlen not in _PREFIXES:
        message = f'is "{cidr}"; a VPC is /{_PREFIXES[0]} to /{_PREFIXES[-1]}'
        return [*found, CIDR_SIZE.finding("cidr", message, f"write {block.network_address}/16")]
    if block.prefixlen + max(count - 1, 0).bit_length() > _PREFIXES[-1]:
        message = f'is "{cidr}", too small for {count} subnets of at least /{_PREFIXES[-1]}'
        found.append(CIDR_SIZE.finding("cidr", message, f"write {block.network_address}/16"))
    if not any(block.subnet_of(private) for private in _PRIVATE):
        message = f'is "{cidr}", which holds public addresses'
        found.append(CIDR_PUBLIC.finding("cidr", message, "use a private range, such as 10.0.0.0/16"))
    return found


def closed_image(image: str, region: str, field: str = "image") -> list[Finding]:
    """Check the image of jobs whose instances reach AWS endpoints only."""
    own = rf"\d{{12}}\.dkr[.-]ecr(-fips)?\.{re.escape(region)}\.[a-z.]+/.+"
    if image.startswith(containers.LOCAL) or re.fullmatch(own, image):
        return []
    message = f'is "{image}", and the network has endpoints alone, by which instances pull from ECR of {region} only'
    fix = f"copy it to <account>.dkr.ecr.{region}.{partition_of(region).suffix}/..., or give the network egress nat"
    return [CLOSED_IMAGE.finding(field, message, fix)]


def _zones(zones: Sequence[str] | int, count: int) -> list[Finding]:
    if count < 1:
        return [ZONES.finding("zones", f"must be at least 1, is {count}", "use two or three zones")]
    if not isinstance(zones, int) and len(set(zones)) < count:
        return [ZONES.finding("zones", f"names a zone twice: {', '.join(zones)}", "name each zone once")]
    if count == 1:
        message = "is one zone, and GPU capacity runs out by zone"
        return [ZONE_COUNT.finding("zones", message, "use two or three zones")]
    return []
