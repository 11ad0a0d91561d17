"""Where records are: objects of the target's bucket, each replaced only as it was read.

gs://<bucket>/accel-jobs/<job>/record.json                       the job (record.py)
gs://<bucket>/accel-jobs/<job>/attempts/<n>/result-<host>.json   what each machine says at its end; written once
"""

import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from accel.contract import buckets

from ...errors import BadInput, CloudSilent, NotFound
from ...google_api import Conflict, Google, object_path
from .marks import attempt_name
from .record import Attempt, Record, Result, as_json, never_made, of_json, result_of

_RESULT = re.compile(r"/result-(\d+)\.json$")
_AT_ONCE = 8


class Records:
    """Of one bucket."""

    def __init__(self, google: Google, bucket: str) -> None:
        self._google, self.bucket = google, bucket
        self._seen: dict[str, Result] = {}

    def claim(self, record: Record) -> tuple[Record, str | None]:
        """The job of the record's key: this one with its generation where it is new, or what an earlier submit left.
        A job that was refused when it was asked for is new again, and its next attempt has another number.

        Raises BadInput where the key is another job's.
        """
        try:
            return record, self._google.write(self.bucket, _path(record.name), _bytes(record), generation=0)
        except Conflict:
            found, generation = self.read(record.name)
        if found.ended and found.key == record.key and never_made(found):
            number = found.last.number + 1
            new = replace(record.last, number=number, name=attempt_name(record.name, number))
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
        where = f"gs://{self.bucket}/{_path(name)}"
        try:
            data, generation = self._google.read("storage", object_path(self.bucket, _path(name)))
        except NotFound:
            raise NotFound(f"there is no job {name} in gs://{self.bucket}/{buckets.JOBS}") from None
        try:
            value = json.loads(data)
        except ValueError as error:
            raise CloudSilent(f"{where}: is not JSON: {error}") from error
        return of_json(value, where), generation

    def replace(self, record: Record, generation: str) -> str | None:
        """The new generation; None where somebody else has replaced it since."""
        try:
            return self._google.write(self.bucket, _path(record.name), _bytes(record), generation=generation)
        except Conflict:
            return None

    def results(self, record: Record, attempt: Attempt) -> Mapping[int, Result]:
        """What the hosts of an attempt have said, by their numbers."""
        prefix = f"{folder(record.name, attempt.number)}/result-"
        items = self._google.pages("storage", f"b/{self.bucket}/o", "items", prefix=prefix)
        names = {str(item.get("name")) for item in items}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            told = [each for each in pool.map(self._result, sorted(names)) if each is not None]
        return {each.host: each for each in told}

    def _result(self, name: str) -> Result | None:
        number = _RESULT.search(name)
        if number is None:
            return None
        if name not in self._seen:
            data, _ = self._google.read("storage", object_path(self.bucket, name))
            try:
                self._seen[name] = result_of(json.loads(data), int(number[1]))
            except (ValueError, AttributeError) as error:
                raise CloudSilent(f"gs://{self.bucket}/{name}: is no result of a job: {error}") from error
        return self._seen[name]

    def newest(self) -> Iterator[Record]:
        """Every job, the newest first."""
        glob = f"{buckets.JOBS}/*/record.json"
        items = self._google.pages(
            "storage", f"b/{self.bucket}/o", "items", matchGlob=glob, fields="items(name,timeCreated),nextPageToken"
        )
        born = {str(item.get("name")): str(item.get("timeCreated")) for item in items}
        for name in sorted(born, key=lambda each: born[each], reverse=True):
            with suppress(NotFound):
                yield self.read(name.split("/")[1])[0]


def folder(name: str, attempt: int) -> str:
    """Where the machines of an attempt leave their results."""
    return f"{buckets.JOBS}/{name}/attempts/{attempt}"


def _path(name: str) -> str:
    return f"{buckets.JOBS}/{name}/record.json"


def _bytes(record: Record) -> bytes:
    return json.dumps(as_json(record), sort_keys=True, indent=1).encode()
