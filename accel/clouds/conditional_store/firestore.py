"""Firestore documents. The version of a document is the time of its last update.

Firestore answers a condition that does not hold with 409 ALREADY_EXISTS, 404 NOT_FOUND or 400 FAILED_PRECONDITION.
Sources: https://docs.cloud.google.com/firestore/docs/reference/rest/v1/projects.databases.documents,
https://github.com/firebase/firebase-admin-node/issues/2587, https://github.com/floci-io/floci-gcp/issues/113
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from accel.json_values import mapping, object_at

from ...diagnostics.errors import NotFound
from ..google.api import Google
from ..google.rest import REACH, Conflict, GarbledAnswer, Unmet, path_segment
from . import Fields, Record, WriteConflict

Json = dict[str, Any]


class Documents:
    """One collection. `collection`: projects/<p>/databases/<d>/documents/<name>; `title` begins messages."""

    def __init__(self, google: Google, collection: str, title: str) -> None:
        self._google, self._title = google, title
        self.path = f"v1/{collection}"
        self._clock = google.clock

    def now(self) -> float:
        return self._clock

    def read(self, key: str) -> Record[Fields] | None:
        """Read strongly consistent. A missing database reads as one without the document; the next write reports it.
        Source: https://firebase.google.com/docs/firestore/reference/rest/latest/projects.databases.documents/get"""
        document = find(self._google, self._path(key))
        self._clock = self._google.clock
        if document is None:
            return None
        title = f"{self._title} {key[:12]}"
        fields, time = mapping(document.get("fields")), version(document, title)
        if fields is None:
            raise no_document(title)
        return Record(decode(fields), time)

    def create(self, key: str, value: Fields) -> None:
        try:
            self._google.post("firestore", self.path, {"fields": encode(value)}, repeat=True, documentId=key)
        except Conflict as error:
            raise WriteConflict(error.message) from error

    def replace(self, key: str, seen: Record[Fields], value: Fields, *, same: Sequence[str] = ()) -> None:
        self._patch(key, seen, value, None)

    def update(self, key: str, seen: Record[Fields], fields: Fields, *, same: Sequence[str] = ()) -> None:
        self._patch(key, seen, fields, [*fields])

    def delete(self, key: str, seen: Record[Fields], *, same: Sequence[str] = ()) -> None:
        with refusals():
            self._google.delete("firestore", self._path(key), **{"currentDocument.updateTime": seen.version})

    def _patch(self, key: str, seen: Record[Fields], fields: Fields, only: Sequence[str] | None) -> None:
        query = {"currentDocument.updateTime": seen.version, "updateMask.fieldPaths": only}
        with refusals():
            self._google.patch("firestore", self._path(key), {"fields": encode(fields)}, **query)

    def _path(self, key: str) -> str:
        return f"{self.path}/{path_segment(key)}"


@contextmanager
def refusals() -> Generator[None]:
    """Raise WriteConflict if a document has changed since it was read."""
    try:
        yield
    except (Unmet, Conflict, NotFound) as error:
        raise WriteConflict(error.message) from error


def find(google: Google, path: str) -> Json | None:
    try:
        return google.get("firestore", path)
    except NotFound:
        return None


def version(document: Mapping[str, Any], title: str) -> str:
    """Return the time of its last update. Raise GarbledAnswer if it has none."""
    time = document.get("updateTime")
    if not isinstance(time, str):
        raise no_document(title)
    return time


def no_document(title: str) -> GarbledAnswer:
    return GarbledAnswer(f"{title}: the answer is no document", REACH)


def encode(fields: Fields) -> Json:
    return {name: _encoded(value) for name, value in fields.items()}


def decode(fields: Mapping[str, Any]) -> Fields:
    """Convert strings and whole numbers; other values stay as they are."""
    return {name: _decoded(object_at(value)) for name, value in fields.items()}


def _encoded(value: str | float | datetime) -> Json:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, datetime):
        return {"timestampValue": f"{value:%Y-%m-%dT%H:%M:%SZ}"}
    return {"integerValue": str(int(value))}


def _decoded(value: Mapping[str, Any]) -> Any:
    number = str(value.get("integerValue", ""))
    return int(number) if number.isdecimal() else value.get("stringValue", value or None)
