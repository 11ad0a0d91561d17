"""Errors of GPUs (XIDs) that the driver wrote into the kernel's log since the machine started. The log can be read by
root on the machine itself and in few containers: /dev/kmsg has to be there, and the kernel requires CAP_SYSLOG if
kernel.dmesg_restrict is 1. https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from .gpus import Pci, pci

KMSG = "/dev/kmsg"

BAD = {
    46: "GPU stopped processing",
    48: "uncorrectable memory error",
    62: "internal micro-controller halted",
    64: "memory row could not be remapped",
    74: "NVLink error",
    79: "GPU fell off the bus",
    95: "memory error not contained",
    109: "context switch timed out",
    110: "security fault",
    119: "GPU firmware does not answer",
    120: "GPU firmware error",
    136: "NVLink training failed",
    140: "uncorrected memory error",
    143: "GPU could not be initialised",
    151: "key rotation failed",
    154: "the driver asks for a reset or a reboot",
    156: "part of the GPU retired",
    158: "GPU timed out for good",
}
"""Errors after which a GPU is unusable until it is reset or its machine replaced. Not 63 (a row was remapped) nor 94 (a
memory error that only one program had), for which NVIDIA asks for nothing, or to start the program again. Source:
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"""

_SUMMARY, _SERIOUS = 154, ("GPU Reset Required", "Node Reboot Required", "Drain and Reset")
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(?:, )?(.*)")
_RECORD = 8192  # the kernel gives one record a read, and refuses a buffer that is too small for it


class Xid(NamedTuple):
    """An error of the GPU at a place on the bus."""

    gpu: Pci | None
    number: int
    text: str

    @property
    def bad(self) -> bool:
        """Whether the GPU is unusable after it. 154 repeats what another error asks for, and counts by its text."""
        now = self.text.rpartition(" to ")[2]  # "changed from 0x0 (None) to 0x1 (GPU Reset Required)"
        return self.number in BAD and (self.number != _SUMMARY or any(words in now for words in _SERIOUS))


def read_xids(path: str = KMSG) -> list[Xid] | None:
    """Return None if the log is missing or may not be read."""
    try:
        log = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    found: list[Xid] = []
    try:
        while record := _next(log):
            for line in record.decode("utf-8", "replace").splitlines():
                if match := _XID.search(line.partition(";")[2]):
                    found.append(Xid(pci(match[1]), int(match[2]), match[3]))
    except OSError:
        return None
    finally:
        os.close(log)
    return found


def _next(log: int) -> bytes:
    while True:
        try:
            return os.read(log, _RECORD)
        except BrokenPipeError:
            continue  # records were overwritten before they were read: the next read gives the oldest that is left
        except BlockingIOError:
            return b""
