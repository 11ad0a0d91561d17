"""What the cloud says of an attempt's machines besides their state: for whoever wants to know why a job is as it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from accel.clouds.kubernetes.responses import object_at as inside

from .record import Attempt, Record
from .state_machine import Machines

SERIAL_BYTES = 8192
"""Of a serial port's output, from its end."""


@dataclass(frozen=True)
class MachineMessages:
    """Lines, each about one thing. `ill`: what is wrong with a machine that is there; `planned`: maintenance."""

    states: tuple[str, ...] = ()
    ill: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()


class ReportingMachines(Machines, Protocol):
    """Machines that tell more of themselves. Each call reads only, and raises what the cloud's calls raise."""

    def messages(self, record: Record, attempt: Attempt) -> MachineMessages:
        """States, health and maintenance."""
        ...

    def printed(self, record: Record, attempt: Attempt) -> tuple[str, ...]:
        """The end of what the first machine wrote to its serial port; empty where there is none to be read."""
        ...

    def history(self, record: Record, attempt: Attempt) -> tuple[str, ...]:
        """What was done to the first machine, and by whom, the oldest first."""
        ...


def maintenance(name: str, of: Mapping[str, Any]) -> tuple[str, ...]:
    """A line about `upcomingMaintenance`, which nodes of TPUs and instances have alike. Source:
    https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes"""
    found = inside(of, "upcomingMaintenance")
    if not found:
        return ()
    start, end = found.get("windowStartTime") or "?", found.get("windowEndTime") or "?"
    return (f"{name}: maintenance is {found.get('maintenanceStatus', 'UNKNOWN')}, from {start} to {end}",)
