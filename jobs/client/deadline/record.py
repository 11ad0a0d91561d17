"""Record of a job's move to on demand, on Google Batch, which keeps no reason of a cancel and lets no label be set.

gs://<bucket>/accel-jobs/<job>/deadline.json    written before the job is sent, to check that the submitter may write
gs://<bucket>/accel-jobs/<job>/on-demand.json   written before the job is cancelled; it continues elsewhere from then on

Both are written once. Without the second, the job's user cancelled it, and it stays cancelled. Source that no method
changes a job: https://docs.cloud.google.com/batch/docs/reference/rest/v1/projects.locations.jobs
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from accel.clouds.conditional_store import WriteConflict
from accel.clouds.conditional_store.objects import Objects
from accel.clouds.google.api import Google
from accel.contract import buckets
from accel.contract.google_jobs import GoogleBatchTarget
from accel.contract.variables import PLAN
from accel.diagnostics.errors import CloudRefused

if TYPE_CHECKING:
    from ...model.job import Job
    from ..bulk import Item
    from ..targets import Targets

BEGUN, MOVED = buckets.DEADLINE, buckets.ON_DEMAND


class Record:
    """Record of one job of a target with a bucket."""

    def __init__(self, bucket: str, job: str, google: Google | None = None) -> None:
        self._bucket, self._folder = bucket, f"{buckets.JOBS}/{job}"
        self._objects = Objects(google or Google(), bucket)

    def begin(self) -> None:
        """Raise CloudRefused where the submitter may not write."""
        try:
            self._write(BEGUN, "sent")
        except CloudRefused as refused:
            hint = f"who submits with spot: prefer keeps in gs://{self._bucket} what becomes of the job"
            raise CloudRefused(refused.message, hint) from refused

    def move(self, why: str) -> None:
        """Record the move before the cancel. Any number of clients may do so."""
        self._write(MOVED, why)

    @property
    def moved(self) -> bool:
        return self._objects.read(f"{self._folder}/{MOVED}") is not None

    def _write(self, name: str, why: str) -> None:
        with suppress(WriteConflict):  # another client has written it
            self._objects.create(f"{self._folder}/{name}", json.dumps({"why": why}).encode())


def begin(pairs: "Sequence[tuple[Job, Item]]", known: "Targets") -> None:
    """Write the first records, before jobs are sent. Raises CloudRefused."""
    for job, (_, request) in pairs:
        _, target = known.choose(request.target)
        if PLAN in job.env and isinstance(target, GoogleBatchTarget):
            Record(target.bucket, request.name).begin()
