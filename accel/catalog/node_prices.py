"""Prices of pool nodes that the price list has no line for: hosts with attached GPUs, and shares of a TPU slice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from accel.catalog.nearest import UnknownName
from accel.catalog.prices import Price, price

TYPE_CHECKING = False  # the arithmetic of slices is loaded by who has one
if TYPE_CHECKING:
    from accel.catalog.prices import Confidence
    from accel.catalog.tpu import Slice

_LEAST_SURE_FIRST: tuple[Confidence, ...] = ("low", "medium", "high")


def find_price(cloud: str, region: str, machine: str) -> Price:
    """Return a Price without figures, with the reason, for a machine or region that may be newer than the catalogue."""
    try:
        return price(cloud, region, machine)
    except UnknownName as error:
        return Price(None, None, None, None, None, None, None, "low", "machine", str(error))


def with_gpus(region: str, host: str, accelerator: str, count: int) -> Price:
    """Price an N1 machine with attached GPUs. `accelerator` is a key of accelerators.csv."""
    return together(find_price("gcp", region, host), find_price("gcp", region, f"n1+{accelerator}x{count}"))


def slice_host(region: str, tpu: Slice) -> Price:
    """Return a host's share of the slice, which is priced as a whole."""
    whole = find_price("gcp", region, tpu.name)
    return replace(
        whole,
        on_demand=_share(whole.on_demand, tpu.hosts),
        spot=_share(whole.spot, tpu.hosts),
        spot_low=_share(whole.spot_low, tpu.hosts),
        scope="machine",
    )


def together(*parts: Price) -> Price:
    """Add up the parts of a machine: unknown if one is, as old as the oldest, as certain as the least certain."""
    return Price(
        on_demand=_sum(part.on_demand for part in parts),
        spot=_sum(part.spot for part in parts),
        spot_low=_sum(part.spot_low for part in parts),
        on_demand_date=_oldest(part.on_demand_date for part in parts),
        spot_date=_oldest(part.spot_date for part in parts),
        on_demand_source=_joined(part.on_demand_source for part in parts),
        spot_source=_joined(part.spot_source for part in parts),
        confidence=next(each for each in _LEAST_SURE_FIRST if any(part.confidence == each for part in parts)),
        scope="machine",
        why_unknown=_joined(part.why_unknown for part in parts),
    )


def _share(whole: float | None, hosts: int) -> float | None:
    return None if whole is None else whole / hosts


def _sum(parts: Iterable[float | None]) -> float | None:
    total = 0.0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _oldest(dates: Iterable[str | None]) -> str | None:
    """Return None if one is missing. Dates begin with the year and the month."""
    known_dates = list(dates)
    return min((date for date in known_dates if date), default=None) if all(known_dates) else None


def _joined(texts: Iterable[str | None]) -> str | None:
    return "; ".join(dict.fromkeys(text for text in texts if text)) or None
