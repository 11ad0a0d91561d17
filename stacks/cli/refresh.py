"""`stacks refresh`: live prices and offers, in a catalogue of the user's own."""

import os
from datetime import UTC, datetime
from typing import Any

import click

from accel.catalog.selection import CHOICE
from accel.console.errors import say, warn
from accel.console.options import OneOf, Settings
from accel.console.output import show

from ..operations.refresh.merge import merge, write
from ..operations.refresh.reading import CLOUDS
from .verb import OutputVerb

COLUMNS = ("cloud", "region", "on_demand", "spot", "offers")


@click.command(cls=OutputVerb)
@click.option("--cloud", "clouds", type=OneOf(*CLOUDS), multiple=True, help="Read this cloud. Repeatable.")
@click.option("--region", "regions", metavar="REGION", multiple=True, help="Read this region of its cloud. Repeatable.")
@click.pass_obj
def refresh(settings: Settings, clouds: tuple[str, ...], regions: tuple[str, ...]) -> None:
    """Read current prices and offers with your own credentials into a catalogue in your cache.

    Commands go on using the shipped catalogue unless ACCEL_CATALOG=refreshed is set. In the new one, values that could
    not be read keep their shipped value and date; each is a warning, and with --strict nothing is written.

    AWS: price list, Spot prices, zones and GPU types; by default of the regions of the environments in this folder.
    Google Cloud: price list (needs GOOGLE_API_KEY or application default credentials), and GPU types if
    GOOGLE_CLOUD_PROJECT names a project; by default of all regions; zones stay as shipped. Without --cloud, the clouds
    of each --region are read, or AWS. Types that the shipped catalogue lacks are added.
    """
    from ..operations.refresh.sources import read_cloud, regions_by_cloud  # need pydantic, which --help does not

    os.environ.pop(CHOICE, None)  # a damaged catalogue must not keep anybody from making a new one
    now = datetime.now(UTC)
    outcome = merge(
        [read_cloud(cloud, places) for cloud, places in regions_by_cloud(clouds, regions).items()], f"{now:%Y-%m-%d}"
    )
    for line in outcome.kept:
        warn(f"kept as shipped: {line}", settings)
    folder = write(outcome.texts, now)
    rows: list[dict[str, Any]] = [
        {"cloud": cloud, "region": region, **counts} for (cloud, region), counts in outcome.counts.items()
    ]
    show(rows, settings.output, COLUMNS, COLUMNS, "region")
    say(f"Written to {folder}; {CHOICE}=refreshed uses it")
