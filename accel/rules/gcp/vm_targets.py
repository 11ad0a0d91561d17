"""Targets where jobs create machines of their own."""

from collections.abc import Sequence

from accel.catalog.nearest import nearest
from accel.catalog.places import regions
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

ZONES = rule("gcp.vm-target.zones")
SUBNET = rule("gcp.vm.subnet")


def zones(given: Sequence[str], field: str = "zones") -> list[Finding]:
    found: list[Finding] = []
    for index, zone in enumerate(given):
        if zone in given[:index]:
            found.append(ZONES.finding(f"{field}[{index}]", f"is {zone} again", "name each zone once"))
        elif zone.rpartition("-")[0] not in regions("gcp"):
            near = nearest(zone.rpartition("-")[0] or zone, list(regions("gcp")), 1)
            fix = f"use a zone such as {near[0]}-a" if near else "use a zone such as us-central1-a"
            found.append(ZONES.finding(f"{field}[{index}]", f'is "{zone}", in no region that is known', fix))
    return found


def subnet(zone: str, of_network: Sequence[str], field: str = "zone") -> list[Finding]:
    region = zone.rpartition("-")[0]
    if region in of_network:
        return []
    message = f"is {zone}, and the network has subnets in {', '.join(sorted(of_network))} only"
    return [SUBNET.finding(field, message, f"add a subnet in {region or zone}, or use a zone of these")]
