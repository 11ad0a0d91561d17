"""Where it is kept that a job was moved: on Google Batch, which keeps no reason of a cancel and lets no label be set.

gs://<bucket>/accel-jobs/<job>/deadline.json    written before the job is sent: whoever sends it may write here
gs://<bucket>/accel-jobs/<job>/on-demand.json   written before the job is cancelled; from then on it goes on elsewhere

Both are written once. Without the second a job that was cancelled was cancelled by its user, and stays so. Source, that
no method changes a job: https://docs.cloud.google.com/batch/docs/reference/rest/v1/projects.locations.jobs
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
    """Of one job of a target with a bucket."""

    def __init__(self, bucket: str, job: str, google: Google | None = None) -> None:
        self._bucket, self._folder = bucket, f"{buckets.JOBS}/{job}"
        self._objects = Objects(google or Google(), bucket)

    def begin(self) -> None:
        """Before the job is sent. Raises CloudRefused where whoever sends it may not write there."""
        try:
            self._write(BEGUN, "sent")
        except CloudRefused as refused:
            hint = f"who submits with spot: prefer keeps in gs://{self._bucket} what becomes of the job"
            raise CloudRefused(refused.message, hint) from refused

    def move(self, why: str) -> None:
        """Before the job is cancelled, by any number of clients."""
        self._write(MOVED, why)

    @property
    def moved(self) -> bool:
        """Whether anybody has moved it."""
        return self._objects.read(f"{self._folder}/{MOVED}") is not None

    def _write(self, name: str, why: str) -> None:
        with suppress(WriteConflict):  # somebody was here before
            self._objects.create(f"{self._folder}/{name}", json.dumps({"why": why}).encode())


def begin(pairs: "Sequence[tuple[Job, Item]]", known: "Targets") -> None:
    """Before jobs are sent: makes sure that it can be kept that they were moved. Raises CloudRefused."""
    for job, (_, request) in pairs:
        _, target = known.choose(request.target)
        if PLAN in job.env and isinstance(target, GoogleBatchTarget):
            Record(target.bucket, request.name).begin()
