"""Objects of a Cloud Storage bucket. The version of an object is its generation. Source:
https://docs.cloud.google.com/storage/docs/request-preconditions"""

from collections.abc import Sequence

from ...diagnostics.errors import NotFound
from ..google.api import Conflict, Google, object_path
from . import Record, WriteConflict


class Objects:
    """One bucket. A write that was made but whose response was lost counts as made."""

    def __init__(self, google: Google, bucket: str) -> None:
        self._google, self._bucket = google, bucket

    def now(self) -> float:
        return self._google.clock

    def read(self, key: str) -> Record[bytes] | None:
        try:
            return Record(*self._google.read("storage", object_path(self._bucket, key)))
        except NotFound:
            return None

    def create(self, key: str, value: bytes) -> str:
        return self._write(key, value, 0)

    def replace(self, key: str, seen: Record[bytes], value: bytes, *, same: Sequence[str] = ()) -> str:
        return self._write(key, value, seen.version)

    def delete(self, key: str, seen: Record[bytes], *, same: Sequence[str] = ()) -> None:
        try:
            self._google.delete("storage", object_path(self._bucket, key), ifGenerationMatch=seen.version)
        except Conflict as error:
            raise WriteConflict(error.message) from error

    def _write(self, key: str, value: bytes, generation: int | str) -> str:
        try:
            return self._google.write(self._bucket, key, value, generation=generation)
        except Conflict as error:
            raise WriteConflict(error.message) from error
