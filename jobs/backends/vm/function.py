"""Reconciliation of one bucket's jobs on machines of their own and declared queues, as a stack's scheduled function on
Cloud Run. Only clients of the bucket advance these: `accel-jobs tend` and the hooks of `pulumi up` do the same, and may
do so at the same time. Its archive has this module, what it imports, and `requests`; nothing else of this project."""

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from accel.clouds.google.api import Google
from accel.clouds.google.rest import GIVEN
from accel.contract import buckets
from accel.diagnostics.errors import JobsError, NotFound

from .gpu.instances import Instances
from .queues import Queues, leaves
from .reconciler import advance
from .record import Record
from .records import ListedRecord, Records
from .state_machine import Machines
from .tpu.queued_resources import QueuedResources

PAUSE_S = 3.0
_AT_ONCE = 8

Say = Callable[[str], None]


class Reconciler:
    """Reconciler of one bucket. It remembers ended jobs, so that a long-lived process reads each only once."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self._ended: set[ListedRecord] = set()

    def reconcile(self, google: Google, say: Say, patience_s: float) -> list[str]:
        """Take the steps that are due now and, for `patience_s` seconds, those that follow once machines are gone.
        Return a line for each failure: one job does not delay the others."""
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


PATIENCE_S = 120.0
"""Time for which a call continues what it began; after that, the next one does."""
METADATA = "metadata.google.internal"

_reconcilers: dict[str, Reconciler] = {}


def handler(request: Any) -> tuple[str, int]:
    """Reconcile the bucket. Return the failures with status 500, so that the log and the scheduler show them."""
    bucket = os.environ[buckets.VARIABLE]
    os.environ[GIVEN] = _token()
    reconciler = _reconcilers.setdefault(bucket, Reconciler(bucket))
    failures = reconciler.reconcile(Google(), lambda text: print(f"accel: {text}"), PATIENCE_S)  # noqa: T201
    for each in failures:
        print(f"accel: failed: {each}")  # noqa: T201
    return "; ".join(failures) or "ok", 500 if failures else 200


def _token() -> str:
    """Return a token of the function's own account. Source:
    https://docs.cloud.google.com/run/docs/securing/service-identity#access_tokens"""
    import requests

    host = os.environ.get("GCE_METADATA_HOST") or METADATA
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    answer = requests.get(url, headers={"Metadata-Flavor": "Google"}, timeout=10)
    answer.raise_for_status()
    return str(answer.json()["access_token"])


MACHINES: dict[str, Callable[[Google], Machines]] = {"tpu-vm": QueuedResources, "gce": Instances}
