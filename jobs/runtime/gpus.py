"""What the GPUs of this machine do, and whether they are sound: by NVML, or else by nvidia-smi.

A reading is what a line of the log takes (see lines.py): what a driver does not tell is absent from it.
"""

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
"""Why clocks are lower than they could be, by bit. 0x1 (idle) and 0x2 (clocks that somebody set) are no fault.
Source: https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html"""

ACTIONS = {
    1: "a reset",
    2: "a reboot of the machine",
    3: "its peer-to-peer traffic drained",
    4: "to be drained and reset",
}
"""What the driver asks for before a GPU is used again, by its recovery action; 0 is nothing.
Source: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html"""

Pci = tuple[int, int, int]
"""Domain, bus and device."""


class Unreadable(Exception):
    """The driver, or what asks it, does not answer as it should; the words are for a person."""


class State(NamedTuple):
    """How sound a GPU is. What the driver does not tell is None."""

    number: int
    name: str
    pci: Pci | None
    parts: int
    """What a program sees of it: 1, or the MIG instances that this process may use."""
    fault: str
    """Why it cannot be used at all; empty where it can."""
    action: int | None
    """What the driver asks for, a key of ACTIONS; 0 for nothing."""
    ecc: int | None
    """Uncorrected memory errors since the driver was loaded."""
    retired_pending: bool | None
    """A memory page is to be retired when the driver is loaded again; before Ampere."""
    remap_pending: bool | None
    """A memory row is to be remapped at the next reset; from Ampere on."""
    remap_failed: bool | None
    """A memory row could not be remapped, at any time."""


class Source(Protocol):
    """A way to ask the driver. Every method raises Unreadable where it does not answer."""

    least_s: float
    """Seconds between two readings below which they would cost too much."""

    def read(self) -> list[dict[str, Any]]:
        """One object a GPU, as a line of the log has it."""
        ...

    def xids(self) -> dict[int, list[int]]:
        """Error numbers that the driver reported since the last call, by index of the GPU; none where it cannot."""
        ...

    def states(self) -> list[State]:
        """How sound each GPU is."""
        ...

    def driver(self) -> str:
        """The driver's version; empty where it is not told."""
        ...

    def close(self) -> None:
        """Lets go of the driver."""
        ...


def throttle_reasons(mask: int) -> list[str]:
    """The reasons in a mask."""
    return [name for bit, name in THROTTLE.items() if mask & bit]


def pci(text: str) -> Pci | None:
    """`00000000:3B:00.0`, or `0000:3b:00` as the kernel's log has it; None for anything else."""
    parts = text.strip().partition(".")[0].split(":")
    try:
        domain, bus, device = (int(part, 16) for part in parts)
    except ValueError:
        return None
    return domain, bus, device
