"""Messages of the cloud about an attempt's machines, besides their state, which help to explain a job's state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from accel.json_values import object_at

from .record import Attempt, Record
from .state_machine import Machines

SERIAL_BYTES = 8192
"""Bytes to read from the end of a serial port's output."""


@dataclass(frozen=True)
class MachineMessages:
    """Lines, each about one thing. `ill`: faults of existing machines; `planned`: maintenance."""

    states: tuple[str, ...] = ()
    ill: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()


class ReportingMachines(Machines, Protocol):
    """Machines that report more about themselves. Each call only reads, and raises what the cloud's calls raise."""

    def messages(self, record: Record, attempt: Attempt) -> MachineMessages:
        """Return states, health and maintenance."""
        ...

    def printed(self, record: Record, attempt: Attempt) -> tuple[str, ...]:
        """Return the end of the first machine's serial port output; empty if there is none to read."""
        ...

    def history(self, record: Record, attempt: Attempt) -> tuple[str, ...]:
        """Return what was done to the first machine, and by whom, oldest first."""
        ...


def maintenance(name: str, of: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a line about `upcomingMaintenance`, which TPU nodes and instances both have. Source:
    https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes"""
    found = object_at(of, "upcomingMaintenance")
    if not found:
        return ()
    start, end = found.get("windowStartTime") or "?", found.get("windowEndTime") or "?"
    return (f"{name}: maintenance is {found.get('maintenanceStatus', 'UNKNOWN')}, from {start} to {end}",)
