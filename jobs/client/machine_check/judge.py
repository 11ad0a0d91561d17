"""Faults of a job's machine: pure functions of its report, and of what the job requests."""

from collections.abc import Callable, Iterator
from typing import Any

from ...backends.base import Places
from . import MachineReport, Skew

SKEW_MAX_S = 1
"""Seconds; more confuses the time stamps of logs, and tokens and leases that last for seconds."""
FREE_MIN = 0.05
"""Least free share of a disk."""


def faults(seen: MachineReport, wanted: Places) -> list[str]:
    return [fault for check in CHECKS for fault in check(seen, wanted)]


def _driver(seen: MachineReport, wanted: Places) -> Iterator[str]:
    if wanted.gpus and not seen.facts.get("driver"):
        yield "no NVIDIA driver answers"


def _gpus(seen: MachineReport, wanted: Places) -> Iterator[str]:
    yield from _count(int(seen.facts.get("gpus") or 0), wanted.gpus, "GPUs")


def _chips(seen: MachineReport, wanted: Places) -> Iterator[str]:
    yield from _count(int(seen.facts.get("chips") or 0), wanted.chips, "TPU chips")


def _count(there: int, wanted: int, what: str) -> Iterator[str]:
    if wanted and there < wanted:
        yield f"{there} of {wanted} {what} are there"
    elif wanted and there > wanted:
        yield f"{there} {what} are there instead of {wanted}"


def _errors(seen: MachineReport, wanted: Places) -> Iterator[str]:
    if wanted.gpus and (count := seen.facts.get("ecc_errors")):
        yield f"{count} uncorrected ECC errors since the driver was loaded"
    if codes := seen.facts.get("xids"):
        yield f"XID {', '.join(map(str, codes))} in the kernel's log"


def _disks(seen: MachineReport, wanted: Places) -> Iterator[str]:
    disks: dict[str, Any] = seen.facts.get("disks") or {}
    for path, disk in disks.items():
        share = free_share(disk)
        if share is not None and share < FREE_MIN:
            yield f"{share:.1%} of the disk of {path} is free ({disk['free_mib']:,} of {disk['mib']:,} MiB)"


def _clock(seen: MachineReport, wanted: Places) -> Iterator[str]:
    far = off(seen.skew)
    if abs(far) > SKEW_MAX_S:
        yield f"its clock is {abs(far):.1f} s {'ahead' if far > 0 else 'behind'}"


CHECKS: tuple[Callable[[MachineReport, Places], Iterator[str]], ...] = (_driver, _gpus, _chips, _errors, _disks, _clock)


def off(skew: Skew) -> float:
    """Return the least number of seconds by which a clock is off."""
    return skew.least if skew.least > 0 else min(skew.most, 0)


def free_share(disk: Any) -> float | None:
    return disk["free_mib"] / disk["mib"] if disk and disk["mib"] else None
