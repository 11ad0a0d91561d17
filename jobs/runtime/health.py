"""Check of this machine's GPUs before a job starts: `python -m accel_runtime.health --gpus 8 -- python train.py`. After
a fault the exit code is BAD_NODE, so that the scheduler tries again, on another machine if it has one. On AWS Batch,
whose five retry rules have room for one exit code, it is that of a stop. Without a fault the command replaces this
process; without a command, the exit code is 0."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from . import lines, platforms
from .gpus import ACTIONS, Source, State, Unreadable
from .gpus_nvml import open_source
from .gpus_xids import BAD, Xid, read_xids
from .stop import STOPPED

BAD_NODE = 75
"""The exit code for a machine that is not fit: "temporary failure, try again" by sysexits.h.
https://man.freebsd.org/cgi/man.cgi?query=sysexits"""

TIMEOUT_S = 60.0
"""A driver in trouble can hang. One that is not kept loaded takes some seconds for each GPU when it starts."""

_CANNOT_RUN, _NOT_FOUND = 126, 127
_SAID_MAX = 4000


class Fault(NamedTuple):
    """A fault of the machine; `check` is the key of CHECKS that it came from."""

    check: str
    words: str


class Health(NamedTuple):
    """Faults of the machine, and notes that are no reason to go elsewhere."""

    faults: list[Fault]
    notes: list[str]
    gpus: int
    driver: str

    @property
    def summary(self) -> str:
        words = [found.words for found in self.faults] or [f"{self._count}, driver {self.driver or 'unknown'}: fit"]
        return "; ".join([*words, *self.notes])[:_SAID_MAX]

    @property
    def _count(self) -> str:
        return "1 GPU" if self.gpus == 1 else f"{self.gpus} GPUs"


CHECKS = {
    "driver": "NVIDIA's driver answers",
    "count": "there are as many GPUs, or MIG instances, as the job asked for",
    "lost": "no GPU is lost, or has to be reset",
    "action": "the driver asks for nothing before a GPU is used (drivers that tell)",
    "ecc": "no uncorrected memory errors, where the driver does not tell that a GPU is fit in spite of them",
    "retired": "no memory page waits to be retired",
    "remap-failed": "no memory row failed to be remapped",
    "xid": "no serious error (XID) of these GPUs in the kernel's log, where it may be read",
}
"""Source of what they mean: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html,
https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html"""


def check(
    gpus: int = 1,
    allowed: Sequence[str] = (),
    timeout_s: float = TIMEOUT_S,
    open_source: Callable[[], Source | None] = open_source,
    log: Callable[[], list[Xid] | None] = read_xids,
) -> Health:
    """Check the machine. `gpus` is the number that the job asked for; `allowed` are keys of CHECKS that are no fault. A
    thread asks the driver, and is given up after `timeout_s`."""
    answers: list[Health] = []
    thread = threading.Thread(target=lambda: answers.append(_look(gpus, open_source, log)), daemon=True)
    thread.start()
    thread.join(timeout_s)
    if not answers:
        answers = [Health([Fault("driver", f"NVIDIA's driver did not answer within {timeout_s:g} s")], [], 0, "")]
    faults = [found for found in answers[0].faults if found.check not in allowed]
    passed = [f"allowed: {found.words}" for found in answers[0].faults if found.check in allowed]
    return answers[0]._replace(faults=faults, notes=passed + answers[0].notes)


def _look(gpus: int, open_source: Callable[[], Source | None], log: Callable[[], list[Xid] | None]) -> Health:
    try:
        source = open_source()
        if source is None:
            return Health([Fault("driver", "there is neither NVIDIA's library (NVML) nor nvidia-smi")], [], 0, "")
        states, driver = source.states(), source.driver()
        source.close()
    except Unreadable as error:
        return Health([Fault("driver", str(error))], [], 0, "")
    there = sum(state.parts for state in states if not state.fault)
    faults = [Fault("count", f"{there} of {gpus} GPUs are there")] if there < gpus else []
    faults += [found for state in states for found in _faults(state)]
    notes = [note for state in states for note in _notes(state)]
    xids = log()
    if xids is None:
        notes.append("the kernel's log cannot be read here, so its XIDs are not known")
    places = {state.pci: state.number for state in states if state.pci}
    last = {(xid.gpu, xid.number): xid for xid in xids or ()}
    bad = {(places[xid.gpu], xid.number) for xid in last.values() if xid.bad and xid.gpu in places}
    faults += [Fault("xid", f"XID {number} on GPU {index}: {BAD[number]}") for index, number in sorted(bad)]
    return Health(faults, notes, there, driver)


def _faults(state: State) -> Iterator[Fault]:
    gpu = f"GPU {state.number}"
    if state.fault:
        yield Fault("lost", f"{gpu} {state.fault}")
    if state.action:
        yield Fault("action", f"{gpu} needs {ACTIONS.get(state.action, f'recovery action {state.action}')}")
    if state.ecc and state.action is None:
        yield Fault("ecc", f"{gpu} had {state.ecc} uncorrected memory errors since its driver was loaded")
    if state.retired_pending:
        yield Fault("retired", f"{gpu} has memory pages to be retired when its driver is loaded again")
    if state.remap_failed:
        yield Fault("remap-failed", f"{gpu} has a memory row that could not be remapped")


def _notes(state: State) -> Iterator[str]:
    # New work may be started with both, by NVIDIA's page at CHECKS.
    if state.ecc and state.action == 0:
        yield f"GPU {state.number} had {state.ecc} uncorrected memory errors, and its driver asks for nothing"
    if state.remap_pending:
        yield f"GPU {state.number} has a memory row to be remapped at its next reset"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the result as a line of the log and each fault on standard error, then run the command."""
    listed = "; ".join(f"{name}: {what}" for name, what in CHECKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m accel_runtime.health",
        description="Ends with 75, on AWS Batch 143, where the GPUs of this machine are not fit for a job.",
        epilog=f"Checks: {listed}.",
    )
    parser.add_argument("--gpus", type=int, default=1, metavar="N", help="GPUs or MIG instances asked for; 1")
    parser.add_argument("--allow", action="append", default=[], choices=CHECKS, metavar="CHECK", help="no fault")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, metavar="SECONDS", help="for the driver; 60")
    parser.add_argument("command", nargs="*", help="what runs where they are fit, behind --")
    given = parser.parse_args(arguments)
    found = check(given.gpus, given.allow, given.timeout)
    sys.stdout.write(lines.format_line(event="health", said=found.summary) + "\n")
    for fault in found.faults:
        sys.stderr.write(f"error: {fault.words} [{fault.check}]\n")
    sys.stdout.flush()
    sys.stderr.flush()
    if found.faults:
        return STOPPED if platforms.here().name == "aws-batch" else BAD_NODE
    return _run(given.command) if given.command else 0


def _run(command: Sequence[str]) -> int:
    """Replace this process. If the command cannot be run, return the exit code that a shell would."""
    try:
        os.execvp(command[0], list(command))  # noqa: S606  the point of it
    except FileNotFoundError:
        code = _NOT_FOUND
    except OSError:
        code = _CANNOT_RUN
    sys.stderr.write(f"error: {command[0]} cannot be run\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
