"""Regions and zones that offer each machine, as far as the data knows."""

from __future__ import annotations

import re
from functools import cache

from accel.catalog.aws_partitions import REGION
from accel.catalog.machines import check_cloud, check_name, check_names
from accel.catalog.nearest import UnavailableName, UnknownName
from accel.catalog.tables import read

# AWS's zone names (us-east-1a) mean a different zone in each account; the data has ids (use1-az1).
_ZONE = {"aws": rf"({REGION})[a-z]", "gcp": r"([a-z]+-[a-z]+\d+)-[a-z]"}


@cache
def _offers() -> dict[tuple[str, str], dict[str, list[str]]]:
    table = read("regions.csv")
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    of, name, in_region, in_zone = (table.at(column) for column in ("cloud", "machine", "region", "zone"))
    last, here = ("", "", ""), list[str]()
    for cells in table.cells():
        # The zones of a region stand together, so that most lines need no lookup.
        if cells[in_region] != last[2] or cells[name] != last[1] or cells[of] != last[0]:
            last = cells[of], cells[name], cells[in_region]
            here = found.setdefault(last[:2], {}).setdefault(last[2], [])
        if cells[in_zone]:
            here.append(cells[in_zone])
    check_names(table, found)
    return found


@cache
def _where(cloud: str, machine: str) -> dict[str, tuple[str, ...]]:
    offered = _offers().get((cloud, machine), {})
    return {region: tuple(sorted(offered[region])) for region in sorted(offered)}


@cache
def regions(cloud: str) -> tuple[str, ...]:
    """Return the known regions in alphabetical order. Raise UnknownName."""
    check_cloud(cloud)
    return tuple(sorted({region for (of, _), places in _offers().items() if of == cloud for region in places}))


@cache
def _zones(cloud: str) -> dict[str, str]:
    return {
        zone: region
        for (of, _), places in _offers().items()
        if of == cloud
        for region, zones in places.items()
        for zone in zones
    }


@cache
def known_zones(cloud: str, region: str) -> tuple[str, ...]:
    """Return the zones that offer something in the data; the region may have others."""
    check_cloud(cloud)
    return tuple(sorted(zone for zone, of in _zones(cloud).items() if of == region))


def check_region(cloud: str, region: str) -> None:
    """Raise UnknownName unless it is a region of the cloud; for a zone, the message has its region."""
    if region in regions(cloud):
        return
    of_zone = _region_of(cloud, region)
    if of_zone is not None:
        raise UnavailableName("region", region, f"{region} is a zone; the region is {of_zone}", (of_zone,))
    raise UnknownName("region", region, regions(cloud))


def _region_of(cloud: str, zone: str) -> str | None:
    looks = re.fullmatch(_ZONE[cloud], zone)
    region = _zones(cloud).get(zone) or (looks[1] if looks else None)
    return region if region in regions(cloud) else None


def where(cloud: str, machine: str) -> dict[str, tuple[str, ...]]:
    """Return the zones of each region that offers a machine, an attachment or a TPU slice: no zones if only the region
    is known, nothing if no region is. AWS zones are ids (use1-az1), the same in every account. Raise UnknownName."""
    check_name(cloud, machine)
    return dict(_where(cloud, machine))


def zones(cloud: str, region: str, machine: str) -> tuple[str, ...]:
    """Return an empty tuple if only the region is known to offer it. Raise UnknownName for a name that does not exist,
    UnavailableName if the machine is not in the region."""
    check_place(cloud, machine, region)
    return _where(cloud, machine)[region]


def check_place(cloud: str, machine: str, place: str) -> None:
    """Raise UnavailableName with the nearest regions if a region lacks a machine, or for a zone, naming its region;
    UnknownName if either does not exist. The data may lag months behind a cloud, so a machine may be in
    more places."""
    check_name(cloud, machine)
    offered = _where(cloud, machine)
    if place not in offered:
        check_region(cloud, place)
        raise _not_offered(machine, place, tuple(offered))


def _not_offered(machine: str, region: str, offered: tuple[str, ...]) -> UnavailableName:
    if not offered:
        return UnavailableName("region", region, f"{machine}: no region is known to offer it", ())
    near = nearest_places(region, offered)
    more = f" and {len(offered) - len(near)} more" if len(offered) > len(near) else ""
    return UnavailableName(
        "region", region, f"{machine} is not offered in {region}; nearest: {', '.join(near)}{more}", near
    )


def nearest_places(place: str, known: tuple[str, ...], n: int = 3) -> tuple[str, ...]:
    """Return those with the longest prefix in common first: names begin with the continent."""
    return tuple(sorted(known, key=lambda each: (-_alike(place, each), each))[:n])


def _alike(left: str, right: str) -> int:
    for count, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return count
    return min(len(left), len(right))
