"""TPUs that a stack declares. They are requested, and again after each loss, until the stack no longer declares them.

gs://<bucket>/accel-queues/<key>.json           declaration: the body of a record; the stack writes it
gs://<bucket>/accel-queues/<name>/record.json   record of one version of it, whose generation is part of the name

A record goes through the states of a job (state_machine.py), so any number of clients may advance it at once. The
record of a version that is replaced or deleted is cancelled first, and its TPUs are gone before the next ones are
requested.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from accel.clouds.google.api import Google, object_path
from accel.contract import buckets
from accel.diagnostics.errors import CloudSilent, JobsError, NotFound, NotPromised

from ...model.keys import content_hash, platform_name, submission_key
from . import labels
from .reconciler import advance
from .record import ENDED, REFUSED, Attempt, Record, Result
from .records import Records
from .tpu.queued_resources import QueuedResources

KIND = "tpu-queue"
UNWANTED = "the stack wants it no more"
POLL_S = 1.0

Say = Callable[[str], None]


class QueueRecords(Records):
    """Records of declared queues. No program on their nodes reports an end."""

    def __init__(self, google: Google, bucket: str) -> None:
        super().__init__(google, bucket, buckets.QUEUES)

    def results(self, record: Record, attempt: Attempt) -> Mapping[int, Result]:
        return {}

    def check(self, record: Record) -> None:
        """Raise NotPromised for another request than is declared, StaleRecord if the declaration was replaced or
        deleted."""
        path = f"{buckets.QUEUES}/{record.job_name}.json"
        where, declaration = f"gs://{self.bucket}/{self._path(record.name)}", f"gs://{self.bucket}/{path}"
        try:
            data, generation = self._google.read("storage", object_path(self.bucket, path))
        except NotFound as gone:
            raise StaleRecord(f"{declaration} is there no more") from gone
        if DeclaredQueue(self.bucket, record.job_name, generation).name != record.name:
            raise StaleRecord(f"{declaration} was written anew")
        if {**json.loads(data), "bucket": self.bucket} != record.body:
            raise NotPromised(f"{where}: is not what {declaration} declares; nothing is made")


class StaleRecord(CloudSilent):
    """The declaration of a record was replaced or deleted. The next `reconcile` retires the record."""


@dataclass(frozen=True)
class DeclaredQueue:
    """One version of a declaration, as the stack wrote it."""

    bucket: str
    key: str
    generation: str

    @property
    def path(self) -> str:
        return object_path(self.bucket, f"{buckets.QUEUES}/{self.key}.json")

    @property
    def id(self) -> str:
        """Id that differs for each version of the declaration, and in each bucket."""
        return submission_key(self.key, f"{self.bucket}/{self.generation}")

    @property
    def name(self) -> str:
        """Name of its record."""
        return labels.machine_name(platform_name(self.key, self.id))


class Queues:
    """Declared queues of one bucket."""

    def __init__(self, google: Google, bucket: str) -> None:
        self._google, self.bucket = google, bucket
        self._machines = QueuedResources(google)
        self.records = QueueRecords(google, bucket)

    def reconcile(self, say: Say, only: str | None = None) -> tuple[list[Record], list[str]]:
        """Take the steps that are due for every queue, or only for the one of a key. Return the records that are left,
        and a line for each failure: one queue does not delay the others."""
        # The records first: one that is made between the two lists is not taken for one of no declaration.
        records = {record.name: record for record in self.records.newest()}
        declared = {each.name: each for each in self._declared()}
        left: list[Record] = []
        failures: list[str] = []

        def step(key: str, act: Callable[[], Record | None]) -> None:
            try:
                left.extend(filter(None, [act()]))
            except JobsError as error:
                failures.append(f"queue {key}: {error.message}")

        for name, record in records.items():
            if name not in declared and only in (None, record.job_name):
                step(record.job_name, lambda record=record: self._retired(record, say))
        former = {record.job_name for record in left if not record.ended}
        for name, each in declared.items():
            if each.key not in former and only in (None, each.key):
                step(each.key, lambda name=name, each=each: self._moved(each, records.get(name), say))
        return left, failures

    def retire(self, key: str, say: Say, patience_s: float) -> None:
        """Cancel every request of a key and wait until its TPUs are gone. The records stay, so that no client requests
        TPUs again while the declaration exists. Raise CloudSilent after `patience_s` seconds."""
        end = time.monotonic() + patience_s
        while True:
            for each in self._declared(key):
                self._claimed(each)
            records = [record for record in self.records.newest() if record.job_name == key]
            moved = [self._cancelled(record, say) for record in records]
            if all(record.ended for record in moved):
                return
            if time.monotonic() >= end:
                raise CloudSilent(f"queue {key}: its TPUs are still there after {patience_s:.0f} s")
            time.sleep(POLL_S)

    def forget(self, key: str) -> None:
        for record in list(self.records.newest()):
            if record.job_name == key and record.ended:
                self.records.forget(record.name)

    def _declared(self, key: str = "*") -> Iterator[DeclaredQueue]:
        glob, fields = f"{buckets.QUEUES}/{key}.json", "items(name,generation),nextPageToken"
        for item in self._google.pages("storage", f"b/{self.bucket}/o", "items", matchGlob=glob, fields=fields):
            name = str(item.get("name")).removeprefix(f"{buckets.QUEUES}/").removesuffix(".json")
            yield DeclaredQueue(self.bucket, name, str(item.get("generation")))

    def _moved(self, declared: DeclaredQueue, record: Record | None, say: Say) -> Record | None:
        """Advance a queue as far as possible now, and return its record; None if it is no longer declared."""
        if record is None:
            record = self._claimed(declared)
            if record is None:
                return None
            # Whoever retires a queue leaves its record as long as the declaration is there: see retire(). Another
            # client may have asked by it for TPUs before that was replaced, so it is not simply deleted.
            if self._generation(declared) != declared.generation:
                return self._retired(record, say)
        return self._advanced(record, say)

    def _claimed(self, declared: DeclaredQueue) -> Record | None:
        """Return the record of a version, and create it if it is new; None if the version was replaced."""
        try:
            data, generation = self._google.read("storage", declared.path)
        except NotFound:
            return None
        if generation != declared.generation:
            return None
        try:
            body = {**json.loads(data), "bucket": self.bucket}
            record = _record(declared, body)
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise CloudSilent(
                f"gs://{self.bucket}/{buckets.QUEUES}/{declared.key}.json: is no queue: {error}"
            ) from error
        return self.records.claim(record)[0]

    def _generation(self, declared: DeclaredQueue) -> str | None:
        try:
            return str(self._google.get("storage", declared.path).get("generation"))
        except NotFound:
            return None

    def _retired(self, record: Record, say: Say) -> Record | None:
        """Retire the record of a version that is gone, and return it; None once it is deleted."""
        with suppress(NotFound):  # where another client has forgotten it
            now = self._cancelled(record, say)
            if not now.ended:
                return now
            self.records.forget(record.name)
        return None

    def _cancelled(self, record: Record, say: Say) -> Record:
        while not (record.ended or record.cancelled):
            read, generation = self.records.read(record.name)
            record = read if read.cancelled else replace(read, cancelled=UNWANTED)
            if read.cancelled or read.ended or self.records.replace(record, generation) is not None:
                break
        return self._advanced(record, say)

    def _advanced(self, record: Record, say: Say) -> Record:
        if record.ended:
            return record
        try:
            told: Say = lambda text: say(f"queue {record.job_name}: {text}")  # noqa: E731
            now = advance(self._machines, self.records, record.name, _now, told)
            if not now.ended and len(now.attempts) > 1 and now.attempts[-2].outcome == REFUSED:
                # Perhaps because a client asked late for an attempt that was over, and was killed: its nodes have the
                # names, and nobody else would remove them.
                for attempt in now.attempts[:-1]:
                    self._machines.remove(now, attempt)
            return now
        except StaleRecord:
            return record
        except NotFound:
            # Its record was forgotten meanwhile, so it had ended: nobody else removes what was made since.
            self._machines.remove(record, record.last)
            return replace(record, ended=_now().isoformat())


def leaves(record: Record) -> bool:
    """Return whether the record's machines are being removed, so that a call a moment later can continue."""
    return not record.ended and record.last.state == ENDED


def _record(declared: DeclaredQueue, body: Mapping[str, Any]) -> Record:
    now, name = _now().isoformat(timespec="milliseconds"), declared.name
    return Record(
        kind=KIND,
        target="",
        name=name,
        job_name=declared.key,
        key=declared.id,
        spec_hash=content_hash(body),
        body=body,
        created=now,
        attempts=(Attempt(number=1, zone=body["zones"][0], name=labels.attempt_name(name, 1), planned=now),),
    )


def _now() -> datetime:
    return datetime.now(UTC)
