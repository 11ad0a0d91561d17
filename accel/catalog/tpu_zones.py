"""The zones in which Google publishes that it has a TPU generation, whatever the size of a slice.

Of the page only parts were seen (North America, and v6e in Europe), and it leaves out zones of one tenant; so it is
laid over the third party's table of regions.csv, and a zone that is in neither may have the TPU all the same.
"""

from collections.abc import Mapping
from functools import cache

from accel.catalog.tables import rows


@cache
def published() -> dict[str, tuple[str, ...]]:
    """The zones of each generation, by the prefix of its slices' names."""
    found: dict[str, list[str]] = {}
    for row in rows("tpu_zones.csv"):
        found.setdefault(row["generation"], []).append(row["zone"])
    return {generation: tuple(zones) for generation, zones in found.items()}


def with_published(generation: str, places: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Zones by region, with those that Google publishes of a generation."""
    found = dict(places)
    for zone in published().get(generation, ()):
        region = zone.rpartition("-")[0]
        found[region] = tuple(sorted({*found.get(region, ()), zone}))
    return found
