"""Everything in a bucket that nobody but its clients moves on: jobs on machines of their own, and declared queues.

`accel-jobs tend`, a stack's scheduled function and the hooks of `pulumi up` do the same, and may do so at once.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from accel.clouds.google.api import Google
from accel.diagnostics.errors import JobsError, NotFound

from .gpu.instances import Instances
from .queues import Queues, leaves
from .reconciler import advance
from .record import Record
from .records import Listed, Records
from .state_machine import Machines
from .tpu.queued import QueuedResources

MACHINES: dict[str, Callable[[Google], Machines]] = {"tpu-vm": QueuedResources, "gce": Instances}
"""By the kind of a record."""
PAUSE_S = 3.0
_AT_ONCE = 8

Say = Callable[[str], None]


class Reconciler:
    """Of one bucket. It remembers which jobs have ended, so that a process that lives on reads each of those once."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self._ended: set[Listed] = set()

    def reconcile(self, google: Google, say: Say, patience_s: float) -> list[str]:
        """Do what is to be done now, and for `patience_s` what follows once machines are gone. What failed, a line
        each: one job does not keep the others waiting."""
        end = time.monotonic() + patience_s
        records, queues = Records(google, self.bucket), Queues(google, self.bucket)
        listed = set(records.listed())
        self._ended &= listed
        names = [each.name for each in sorted(listed - self._ended)]
        of_name = {each.name: each for each in listed}
        while True:
            moved, failures = self._jobs(google, records, names, say)
            self._ended |= {of_name[record.name] for record in moved if record.ended}
            queued, failed = queues.reconcile(say)
            names = [record.name for record in moved if leaves(record)]
            if not (names or any(map(leaves, queued))) or time.monotonic() >= end:
                return failures + failed
            time.sleep(PAUSE_S)

    def _jobs(self, google: Google, records: Records, names: Iterable[str], say: Say) -> tuple[list[Record], list[str]]:
        moved: list[Record] = []
        failures: list[str] = []

        def move(name: str) -> None:
            try:
                record, _ = records.read(name)
                make = MACHINES.get(record.kind)
                if make and not record.ended:
                    told: Say = lambda text: say(f"{record.kind}:{self.bucket}/{name}: {text}")  # noqa: E731
                    record = advance(make(google), records, name, _now, told)
                moved.append(record)
            except NotFound:
                return
            except JobsError as error:
                failures.append(f"{name}: {error.message}")

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(move, names))
        return moved, failures


def _now() -> datetime:
    return datetime.now(UTC)
