"""Hardware facts of the clouds: data files with source and date, and typed lookups that never guess."""

from accel.catalog.accelerators import Accelerator, accelerator, accelerators
from accel.catalog.machines import (
    Machine,
    NoMachine,
    expand,
    families,
    hosts,
    machine,
    machines,
    machines_for,
    resolve_machines,
)
from accel.catalog.memory import (
    Fit,
    Holding,
    fits,
    gke_allocatable,
    holding,
    suggested_memory_mib,
    usable_memory_mib,
)
from accel.catalog.nearest import AmbiguousName, UnavailableName, UnknownName, nearest
from accel.catalog.places import check_place, regions, where, zones
from accel.catalog.prices import Price, price, prices_for
from accel.catalog.spot import Interruption, interruption
from accel.catalog.tables import DamagedData

__all__ = [
    "Accelerator",
    "AmbiguousName",
    "DamagedData",
    "Fit",
    "Holding",
    "Interruption",
    "Machine",
    "NoMachine",
    "Price",
    "UnavailableName",
    "UnknownName",
    "accelerator",
    "accelerators",
    "check_place",
    "expand",
    "families",
    "fits",
    "gke_allocatable",
    "holding",
    "hosts",
    "interruption",
    "machine",
    "machines",
    "machines_for",
    "nearest",
    "price",
    "prices_for",
    "regions",
    "resolve_machines",
    "suggested_memory_mib",
    "usable_memory_mib",
    "where",
    "zones",
]
