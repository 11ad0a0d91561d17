"""Where records are: objects of the target's bucket, each replaced only as it was read.

gs://<bucket>/accel-jobs/<job>/record.json                       the job (record.py)
gs://<bucket>/accel-jobs/<job>/attempts/<n>/result-<host>.json   what each machine says at its end; written once

The records of declared queues are in a folder of their own: see queues.py.
"""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from accel.clouds.conditional_store import Changed
from accel.clouds.conditional_store import Record as Stored
from accel.clouds.conditional_store.objects import Objects
from accel.clouds.google.api import Google, object_path
from accel.clouds.google.bucket_targets import published
from accel.contract import buckets
from accel.diagnostics.errors import BadInput, CloudSilent, NotFound, NotPromised

from .compare import difference
from .labels import PREFIX, attempt_name
from .record import Attempt, Record, Result, as_json, never_made, of_json, result_of

_AT_ONCE = 8
NONE: Mapping[str, Mapping[str, Any]] = {}
CHANGED = "the target was changed after the job was sent, or the record was: cancel the job, and submit it again"


class Records:
    """Of one bucket's folder. `known`: targets by name, as JSON values, that the client has of its own."""

    def __init__(
        self, google: Google, bucket: str, of: str = buckets.JOBS, known: Mapping[str, Mapping[str, Any]] = NONE
    ) -> None:
        self._google, self.bucket, self._of, self._known = google, bucket, of, known
        self._objects = Objects(google, bucket)
        self._seen: dict[str, Result] = {}

    def claim(self, record: Record) -> tuple[Record, str | None]:
        """The job of the record's key: this one with its generation where it is new, or what an earlier submit left.
        A job that was refused when it was asked for is new again, and its next attempt has another number.

        Raises BadInput where the key is another job's.
        """
        try:
            return record, self._objects.create(self._path(record.name), _bytes(record))
        except Changed:
            found, generation = self.read(record.name)
        if found.ended and found.key == record.key and never_made(found):
            number, prefix = found.last.number + 1, record.body.get(PREFIX, "")
            new = replace(record.last, number=number, name=attempt_name(record.name, number, prefix))
            anew = replace(record, attempts=(*found.attempts, new))
            if made := self.replace(anew, generation):
                return anew, made
            found, _ = self.read(record.name)
        if (found.key, found.spec_hash) != (record.key, record.spec_hash):
            raise BadInput(
                f"key: it was used for another request: {record.name}",
                "submit the job as it was then, or use another --key",
            )
        return found, None

    def read(self, name: str) -> tuple[Record, str]:
        """The record and its generation. Raises NotFound."""
        where = f"gs://{self.bucket}/{self._path(name)}"
        try:
            data, generation = self._google.read("storage", object_path(self.bucket, self._path(name)))
        except NotFound:
            raise NotFound(f"there is no job {name} in gs://{self.bucket}/{self._of}") from None
        try:
            value = json.loads(data)
        except ValueError as error:
            raise CloudSilent(f"{where}: is not JSON: {error}") from error
        record = of_json(value, where)
        if record.name != name:
            raise CloudSilent(f"{where}: is the record of another job: {record.name}")
        return record, generation

    def check(self, record: Record) -> None:
        """Compares what the record asks for with the targets of the bucket. Raises NotPromised where none has it."""
        differences: dict[str, str] = {}
        for name, target in chain(self._known.items(), published(self._google, self.bucket)):
            if (found := difference(record, target)) is None:
                return
            differences.setdefault(name, found)
        where = f"gs://{self.bucket}/{self._path(record.name)}"
        if not differences:
            said = f"there is no target in gs://{self.bucket}/{buckets.TARGETS} to compare it with"
            raise NotPromised(f"{where}: {said}; nothing is made", "`accel-jobs tend --to TARGET` knows its target")
        name = record.target if record.target in differences else next(iter(differences))
        raise NotPromised(f"{where}: target {name}: {differences[name]}; nothing is made", CHANGED)

    def replace(self, record: Record, generation: str) -> str | None:
        """The new generation; None where somebody else has replaced it since."""
        try:
            return self._objects.replace(self._path(record.name), Stored(b"", generation), _bytes(record))
        except Changed:
            return None

    def forget(self, name: str) -> None:
        """Deletes a record; none is there is no error."""
        self._google.delete("storage", object_path(self.bucket, self._path(name)))

    def _path(self, name: str) -> str:
        return f"{self._of}/{name}/{buckets.RECORD}"

    def results(self, record: Record, attempt: Attempt) -> Mapping[int, Result]:
        """What the hosts of an attempt have said, by their numbers; what others write there is not read."""
        prefix = f"{folder(record.name, attempt.number)}/result-"
        items = self._google.pages("storage", f"b/{self.bucket}/o", "items", prefix=prefix)
        wanted = {f"{prefix}{host}.json": host for host in range(record.hosts)}
        there = sorted(wanted.keys() & {str(item.get("name")) for item in items})
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            told = pool.map(self._result, there, [wanted[name] for name in there])
            return {each.host: each for each in told}

    def _result(self, name: str, host: int) -> Result:
        if name not in self._seen:
            data, _ = self._google.read("storage", object_path(self.bucket, name))
            try:
                self._seen[name] = result_of(json.loads(data), host)
            except (ValueError, AttributeError, RecursionError) as error:
                raise CloudSilent(f"gs://{self.bucket}/{name}: is no result of a job: {error}") from error
        return self._seen[name]

    def newest(self) -> Iterator[Record]:
        """Every job, the newest first."""
        born = {item.name: item.created for item in self.listed()}
        for name in sorted(born, key=lambda each: born[each], reverse=True):
            with suppress(NotFound):
                yield self.read(name)[0]

    def listed(self) -> Iterator["Listed"]:
        """Every record's name, without what is in it."""
        glob, fields = f"{self._of}/*/{buckets.RECORD}", "items(name,timeCreated,generation),nextPageToken"
        for item in self._google.pages("storage", f"b/{self.bucket}/o", "items", matchGlob=glob, fields=fields):
            name = str(item.get("name")).split("/")[1]
            yield Listed(name, str(item.get("timeCreated")), str(item.get("generation")))


class Listed(NamedTuple):
    """A record as a list of objects has it."""

    name: str
    created: str
    generation: str


def folder(name: str, attempt: int) -> str:
    """Where the machines of an attempt leave their results."""
    return f"{buckets.JOBS}/{name}/attempts/{attempt}"


def _bytes(record: Record) -> bytes:
    return json.dumps(as_json(record), sort_keys=True, indent=1).encode()
