"""Records that are written only if they have not changed since they were read.

dynamodb.py   items of a table             firestore.py  documents of a collection
objects.py    objects of a bucket          files.py      files of a folder on this machine

A write whose condition does not hold raises WriteConflict and changes nothing. A response may get lost, so a caller
that needs to know whether a write was made reads again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ...diagnostics.errors import CloudRefused

Value = TypeVar("Value")
Fields = Mapping[str, Any]
"""Strings, whole numbers and times by name. Values of other types stay as the service writes them."""


class WriteConflict(CloudRefused):
    """The record has changed since it was read, or one exists already."""


class Record(NamedTuple, Generic[Value]):
    """A record as it was read."""

    value: Value
    version: str


class ConditionalStore(Protocol[Value]):
    """Records by key. A write raises WriteConflict unless the record is new, or has not changed."""

    def now(self) -> float:
        """Return Unix seconds of the store's clock at the last read. Two clients' clocks may differ by minutes."""
        ...

    def read(self, key: str) -> Record[Value] | None:
        """Return the current record, never an older one."""
        ...

    def create(self, key: str, value: Value) -> None: ...

    def replace(self, key: str, seen: Record[Value], value: Value, *, same: Sequence[str] = ()) -> None:
        """Write it if unchanged. `same`: fields that stand for the whole record in a store without versions."""
        ...

    def delete(self, key: str, seen: Record[Value], *, same: Sequence[str] = ()) -> None: ...


class FieldStore(ConditionalStore[Fields], Protocol):
    """Records whose fields can be written separately."""

    def update(self, key: str, seen: Record[Fields], fields: Fields, *, same: Sequence[str] = ()) -> None:
        """Write some fields if the record has not changed; keep the others."""
        ...
