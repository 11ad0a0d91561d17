"""Live data of a cloud, as plain values."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from accel.diagnostics.errors import CloudSilent

CLOUDS = ("aws", "gcp")
Key = tuple[str, str]
"""A region and a machine."""


@dataclass(frozen=True)
class Spot:
    """USD per hour: the minimum and the median over so many zones."""

    low: float
    median: float
    zones: int


@dataclass(frozen=True)
class Source:
    """A line of sources.csv: the origin of one kind of figure."""

    id: str
    what: str
    used_for: str


@dataclass(frozen=True)
class Types:
    """Machine types that a cloud has and the shipped catalogue lacks: their lines of machines.csv, the lines of
    accelerators.csv that they need, and the zones of each by region (none: they come with the offers). `kept` has a
    line for what could not be read, or cannot be known."""

    source: Source | None = None
    machines: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    accelerators: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    places: dict[Key, set[str]] = field(default_factory=dict[Key, set[str]])
    kept: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Reading:
    """Live data of one cloud about some of its regions: USD per hour by region and machine; the zones of every machine
    that a region offers, for each region whose offers were read. `basis` says by the kind of a machine how its
    on-demand price was determined, with `machine` for every other kind; `sure` is the confidence of all; `kept` has a
    line for what could not be read, and so stays as shipped."""

    cloud: str
    regions: tuple[str, ...]
    basis: Mapping[str, str]
    sure: str
    spot_basis: str
    on_demand_source: Source
    spot_source: Source
    offers_source: Source | None = None
    on_demand: dict[Key, float] = field(default_factory=dict[Key, float])
    spot: dict[Key, Spot] = field(default_factory=dict[Key, Spot])
    offers: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict[str, dict[str, tuple[str, ...]]])
    kept: list[str] = field(default_factory=list[str])
    types: Types = field(default_factory=Types)

    @property
    def empty(self) -> bool:
        return not (self.on_demand or self.spot or self.offers)


@contextmanager
def understood(doing: str, cloud: str) -> Generator[None]:
    """Raise CloudSilent for errors in parsing an answer: it is not what the cloud documents."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise CloudSilent(f"{doing}: the answer is not what {cloud} documents: {said}") from error


def machine_line(cloud: str, name: str, series: str, kind: str, count: float, source: Source) -> dict[str, str]:
    """Return the fields that every line of machines.csv has for an accelerator machine of a cloud."""
    line = {"cloud": cloud, "machine": name, "kind": "accelerator", "series": series, "status": "listed"}
    return line | {
        "accelerator": kind,
        "accelerator_count": f"{count:g}",
        "source": source.id,
        "attach_mode": "bundled",
    }
