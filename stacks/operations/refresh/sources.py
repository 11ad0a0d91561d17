"""The regions and clouds to read, and the reading of a cloud."""

from dataclasses import replace
from pathlib import Path

from accel.catalog.check import machine_rows
from accel.catalog.nearest import UnknownName
from accel.catalog.tables import shipped_table
from accel.diagnostics.errors import BadInput, CloudRefused, NotFound

from ..stack_files import read_stacks, stack_files
from . import aws, gcp
from .reading import CLOUDS, Reading


def regions_by_cloud(clouds: tuple[str, ...], regions: tuple[str, ...]) -> dict[str, list[str]]:
    """Raise BadInput for a region of no cloud here, NotFound where neither option nor environment names one of AWS."""
    known: dict[str, dict[str, None]] = {cloud: {} for cloud in CLOUDS}
    for row in shipped_table("regions.csv").rows():
        known[row["cloud"]][row["region"]] = None
    wanted: dict[str, list[str]] = {cloud: [] for cloud in clouds}
    for region in dict.fromkeys(regions):
        cloud = next((each for each in clouds or CLOUDS if region in known[each]), None)
        if cloud is None:
            candidates = [name for each in clouds or CLOUDS for name in known[each]]
            raise BadInput(f"--region: {UnknownName('region', region, candidates)}")
        wanted.setdefault(cloud, []).append(region)
    if not wanted:
        wanted["aws"] = []
    for cloud, places in wanted.items():
        if not places:
            places += sorted(known["gcp"]) if cloud == "gcp" else _of_environments()
    return wanted


def _of_environments() -> list[str]:
    try:
        stacks = read_stacks(stack_files([], Path()), strict=False)
    except NotFound as error:
        raise NotFound(error.message, "name the regions with --region, or run this where Pulumi.yaml is") from None
    regions = {stack.environment.aws.region for stack in stacks if stack.environment.aws}
    if not regions:
        raise NotFound("no environment here has an aws section", "name the regions with --region")
    return sorted(regions)


def read_cloud(cloud: str, regions: list[str]) -> Reading:
    """Raise CloudRefused where the cloud answers nothing at all."""
    rows = {name: row for (of, name), row in machine_rows().items() if of == cloud}
    if cloud == "aws":
        types = aws.types(regions, list(rows))
        reading = aws.read(regions, [*rows, *types.machines])
    else:
        types = gcp.types(regions, list(rows))
        reading = gcp.read(regions, list(rows.values()))
    reading = replace(reading, types=types)
    if reading.empty:
        raise CloudRefused(f"nothing was read: {'; '.join(reading.kept) or 'no answer had a price'}")
    return reading
