"""`stacks refresh`: live prices and offers, in a catalogue of one's own."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel.console.errors import say, warn
from accel.console.options import OneOf, Settings
from accel.console.output import show
from accel.diagnostics.errors import BadInput, CloudRefused, NotFound

from ...cli.main import StackVerb

if TYPE_CHECKING:
    from .reading import Reading

CLOUDS = ("aws", "gcp")
COLUMNS = ("cloud", "region", "on_demand", "spot", "offers")


class RefreshVerb(StackVerb):
    """With -o."""

    COMMON = ("output", *StackVerb.COMMON)


@click.command(cls=RefreshVerb)
@click.option(
    "--cloud", "clouds", type=OneOf(*CLOUDS), multiple=True, help="Read this cloud; may be repeated. See below."
)
@click.option(
    "--region", "regions", metavar="REGION", multiple=True, help="Read this region of its cloud; may be repeated."
)
@click.pass_obj
def refresh(settings: Settings, clouds: tuple[str, ...], regions: tuple[str, ...]) -> None:
    """Read prices and offers with your own credentials into a catalogue in your cache.

    The shipped catalogue stays in use; ACCEL_CATALOG=refreshed makes every command use the new one. There, what was not
    read has its shipped value and date. What could not be read is a warning; with --strict nothing is written then.

    AWS is asked for its price list, Spot prices, zones and GPU types. Without --region: of the regions of the
    environments in this folder. Google Cloud is asked for its price list, with GOOGLE_API_KEY or application default
    credentials, and for its GPU types where GOOGLE_CLOUD_PROJECT names a project; its zones stay as shipped. Without
    --region: of all regions. Without --cloud: the clouds of each --region, else AWS. Types that the shipped catalogue
    lacks are added to the new one.
    """
    from datetime import UTC, datetime

    from accel.catalog.selection import CHOICE

    from .merge import merged, write

    os.environ.pop(CHOICE, None)  # a damaged catalogue must not keep anybody from making a new one
    now = datetime.now(UTC)
    outcome = merged([_read(cloud, places) for cloud, places in asked(clouds, regions).items()], f"{now:%Y-%m-%d}")
    for line in outcome.kept:
        warn(f"kept as shipped: {line}", settings)
    folder = write(outcome.texts, now)
    rows: list[dict[str, Any]] = [
        {"cloud": cloud, "region": region, **counts} for (cloud, region), counts in outcome.counts.items()
    ]
    show(rows, settings.output, COLUMNS, COLUMNS, "region")
    say(f"Written to {folder}; {CHOICE}=refreshed uses it")


def asked(clouds: tuple[str, ...], regions: tuple[str, ...]) -> dict[str, list[str]]:
    """The regions to read by cloud. Raises BadInput for a region that no cloud asked has, NotFound where neither a
    region nor an environment says which of AWS."""
    from accel.catalog.nearest import UnknownName
    from accel.catalog.tables import shipped

    known: dict[str, dict[str, None]] = {cloud: {} for cloud in CLOUDS}
    for row in shipped("regions.csv").rows():
        known[row["cloud"]][row["region"]] = None
    found: dict[str, list[str]] = {cloud: [] for cloud in clouds}
    for region in dict.fromkeys(regions):
        cloud = next((each for each in clouds or CLOUDS if region in known[each]), None)
        if cloud is None:
            candidates = [name for each in clouds or CLOUDS for name in known[each]]
            raise BadInput(f"--region: {UnknownName('region', region, candidates)}")
        found.setdefault(cloud, []).append(region)
    if not found:
        found["aws"] = []
    for cloud, places in found.items():
        if not places:
            places += sorted(known["gcp"]) if cloud == "gcp" else _of_environments()
    return found


def _of_environments() -> list[str]:
    from ..stack_files import read_stacks, stack_files

    try:
        found = read_stacks(stack_files([], Path()), strict=False)
    except NotFound as error:
        raise NotFound(error.message, "name the regions with --region, or run this where Pulumi.yaml is") from None
    regions = {stack.environment.aws.region for stack in found if stack.environment.aws}
    if not regions:
        raise NotFound("no environment here has an aws section", "name the regions with --region")
    return sorted(regions)


def _read(cloud: str, regions: list[str]) -> "Reading":
    """Raises CloudRefused where the cloud told nothing at all."""
    from dataclasses import replace

    from accel.catalog.check import machine_rows

    from . import types as refresh_types

    rows = {name: row for (of, name), row in machine_rows().items() if of == cloud}
    if cloud == "aws":
        from .aws import read

        types = refresh_types.aws(regions, list(rows))
        reading = read(regions, [*rows, *types.machines])
    else:
        from .gcp import read

        types = refresh_types.google(regions, list(rows))
        reading = read(regions, list(rows.values()))
    reading = replace(reading, types=types)
    if reading.empty:
        raise CloudRefused(f"nothing was read: {'; '.join(reading.kept) or 'no answer had a price'}")
    return reading
