"""The rows of table.yaml."""

import ipaddress
from pathlib import Path
from typing import Any

import yaml

from ..resource import Autoname, State
from .life import Kind
from .special import ACTS

_NONE: frozenset[str] = frozenset()
_WORDS = ("replace", "computed", "own", "moving", "apart", "unread")


def shrunk_range(old: State, new: State) -> frozenset[str]:
    """The provider expands a range in place and replaces for any other: IsShrinkageIpCidr of its subnetwork."""
    before, after = str(old.get("ipCidrRange", "")), str(new.get("ipCidrRange", ""))
    try:
        grown = ipaddress.ip_network(before).subnet_of(ipaddress.ip_network(after))  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return _NONE
    return _NONE if grown else frozenset({"ipCidrRange"})


def shrunk_size(old: State, new: State) -> frozenset[str]:
    before, after = old.get("size"), new.get("size")
    smaller = isinstance(before, int) and isinstance(after, int) and after < before
    return frozenset({"size"}) if smaller else _NONE


def interfaces(old: State, new: State) -> frozenset[str]:
    """An instance keeps its number of network interfaces."""
    before, after = (len(side.get("networkInterfaces", [])) for side in (old, new))
    return frozenset({"networkInterfaces"}) if before != after else _NONE


_RULES = {"shrunk_range": shrunk_range, "shrunk_size": shrunk_size, "interfaces": interfaces}


def _kind(row: State) -> Kind:
    made: dict[str, Any] = {**row, "places": tuple(row.get("places", "project").split())}
    made |= {name: frozenset(row[name].split()) for name in _WORDS if name in row}
    for name, known in (("acts", ACTS), ("replace_if", _RULES)):
        if name in row:
            made[name] = known[row[name]]
    if "autoname" in row:
        made["autoname"] = Autoname(**row["autoname"])
    return Kind(**made)


def load() -> dict[str, Kind]:
    rows: dict[str, State] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    return {token: _kind(row) for token, row in rows.items()}
