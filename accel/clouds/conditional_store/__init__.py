"""Records that are written only where they are as they were read.

dynamodb.py   items of a table             firestore.py  documents of a collection
objects.py    objects of a bucket          files.py      files of a folder on this machine

A write whose condition does not hold raises WriteConflict and has changed nothing. An answer may be lost on its way, so
whoever has to know whether a write was made reads again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ...diagnostics.errors import CloudRefused

Value = TypeVar("Value")
Fields = Mapping[str, Any]
"""Strings, whole numbers and times by their names; what is of another kind is left as the service writes it."""


class WriteConflict(CloudRefused):
    """The record is not as it was read, or there is one already."""


class Record(NamedTuple, Generic[Value]):
    """A record as it was read."""

    value: Value
    version: str


class ConditionalStore(Protocol[Value]):
    """Records by their keys. Each write raises WriteConflict where its condition does not hold."""

    def now(self) -> float:
        """Return Unix seconds of the store's own clock at the last read: clocks of two clients may be minutes apart."""
        ...

    def read(self, key: str) -> Record[Value] | None:
        """Return the record as it is now, never an older one."""
        ...

    def create(self, key: str, value: Value) -> None:
        """Write a record if there is none."""
        ...

    def replace(self, key: str, seen: Record[Value], value: Value, *, same: Sequence[str] = ()) -> None:
        """Write a record if it is as it was seen. `same`: fields that stand for all in a store that has no versions."""
        ...

    def delete(self, key: str, seen: Record[Value], *, same: Sequence[str] = ()) -> None:
        """Delete a record if it is as it was seen."""
        ...


class FieldStore(ConditionalStore[Fields], Protocol):
    """Records of fields, of which some may be written alone."""

    def update(self, key: str, seen: Record[Fields], fields: Fields, *, same: Sequence[str] = ()) -> None:
        """Write some fields if the record is as it was seen; the others stay."""
        ...
