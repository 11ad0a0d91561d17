"""Use and health of this machine's GPUs, by NVML, or else by nvidia-smi. A reading has the form of a line of the log
(see lines.py). Values that a driver does not report are absent from it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

MIB = 2**20

THROTTLE = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clock",
}
"""Reasons for reduced clocks, by bit. 0x1 (idle) and 0x2 (clocks that somebody set) are no fault. Source:
https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html"""

ACTIONS = {
    1: "a reset",
    2: "a reboot of the machine",
    3: "its peer-to-peer traffic drained",
    4: "to be drained and reset",
}
"""Actions that the driver asks for before a GPU is used again, by its recovery action; 0 is none. Source:
https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html"""

Pci = tuple[int, int, int]
"""Domain, bus and device."""


class Unreadable(Exception):
    """The driver, or the tool that asks it, does not answer as it should. The message is for people."""


class State(NamedTuple):
    """Health of a GPU. A value that the driver does not report is None."""

    number: int
    name: str
    pci: Pci | None
    parts: int
    """Devices that a program sees: 1, or the number of MIG instances that this process may use."""
    fault: str
    """Reason why it cannot be used at all; empty if it can."""
    action: int | None
    """Action that the driver asks for, a key of ACTIONS; 0 for none."""
    ecc: int | None
    """Uncorrected memory errors since the driver was loaded."""
    retired_pending: bool | None
    """A memory page is to be retired when the driver is loaded again; before Ampere."""
    remap_pending: bool | None
    """A memory row is to be remapped at the next reset; from Ampere on."""
    remap_failed: bool | None
    """A memory row could not be remapped, at any time."""


class Source(Protocol):
    """A way to ask the driver. Every method raises Unreadable if the driver does not answer."""

    least_s: float
    """Minimum seconds between two readings; more frequent ones would cost too much."""

    def read(self) -> list[dict[str, Any]]:
        """Return one object for each GPU, in the form of a line of the log."""
        ...

    def xids(self) -> dict[int, list[int]]:
        """Return the error numbers that the driver reported since the last call, by index of the GPU; none if it cannot
        report any."""
        ...

    def states(self) -> list[State]:
        """Return the health of each GPU."""
        ...

    def driver(self) -> str:
        """Return the driver's version, or an empty string if it is unknown."""
        ...

    def close(self) -> None:
        """Release the driver."""
        ...


def throttle_reasons(mask: int) -> list[str]:
    return [name for bit, name in THROTTLE.items() if mask & bit]


def pci(text: str) -> Pci | None:
    """Parse `00000000:3B:00.0`, or `0000:3b:00` as in the kernel's log. Return None for anything else."""
    parts = text.strip().partition(".")[0].split(":")
    try:
        domain, bus, device = (int(part, 16) for part in parts)
    except ValueError:
        return None
    return domain, bus, device
