"""Region of an environment, and whether it offers the instance types."""

import re
from collections.abc import Sequence

from accel.catalog import UnavailableName, UnknownName, expand
from accel.catalog.aws_partitions import REGION
from accel.catalog.places import check_region, nearest_places, regions, where
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

IS_ZONE = rule("aws.region.is-zone")
NAME = rule("aws.region.name")
UNKNOWN = rule("aws.region.unknown")
NOT_OFFERED = rule("aws.types.not-offered")

_FORM = re.compile(REGION, re.ASCII)


def region(name: str, field: str = "region") -> list[Finding]:
    try:
        check_region("aws", name)
    except UnavailableName as refused:
        return [IS_ZONE.finding(field, f'is "{name}", which is a zone', f"use {' or '.join(refused.nearest)}")]
    except UnknownName as unknown:
        near = " or ".join(unknown.nearest)
        if not _FORM.fullmatch(name):
            fix = f"use {near}" if near else "write one such as us-east-1"
            return [NAME.finding(field, f'is "{name}", which is no region', fix)]
        fix = f"use {near}, or make sure that it exists" if near else "make sure that it exists"
        return [UNKNOWN.finding(field, f'is "{name}", which the catalogue does not know', fix)]
    return []


def instance_types(in_region: str, names: Sequence[str], field: str = "instance_types") -> list[Finding]:
    """Ignore unknown regions and types, and types that AWS no longer lists, whose regions are not all known."""
    if in_region not in regions("aws"):
        return []
    found: list[Finding] = []
    for i, name in enumerate(names):
        try:
            machines = expand([name])
        except UnknownName:
            continue  # aws_types.instance_types() reports it
        offered = [place for machine in machines for place in where("aws", machine.name)]
        if in_region in offered or any(machine.status != "listed" for machine in machines):
            continue
        near = nearest_places(in_region, tuple(dict.fromkeys(offered)))
        message = f'is "{name}", which is not offered in {in_region}'
        elsewhere = f", or a region that has it, such as {', '.join(near)}" if near else ""
        fix = f"use another type{elsewhere}; `stacks refresh` reads what AWS offers today"
        found.append(NOT_OFFERED.finding(f"{field}[{i}]", message, fix))
    return found
