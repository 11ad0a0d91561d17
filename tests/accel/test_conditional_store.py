"""Records that are written only as they were read: a file's whole life, and what the others send of a condition."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from accel.clouds.conditional_store import Fields, Record, WriteConflict, dynamodb, firestore
from accel.clouds.conditional_store.files import Files
from accel.clouds.conditional_store.objects import Objects
from accel.clouds.google.rest import Conflict, Unmet
from accel.diagnostics.errors import NotFound

FIELDS: Fields = {"owner": "me", "lease_until": 7, "expires": datetime(2026, 1, 2, tzinfo=UTC)}


def test_a_file_is_written_only_as_it_was_read(tmp_path: Path) -> None:
    store = Files(tmp_path)
    with store.lock("a"):
        assert store.read("a") is None
        store.create("a", {"owner": "me"})
        with pytest.raises(WriteConflict):
            store.create("a", {"owner": "other"})
        seen = store.read("a")
        assert seen and seen.value == {"owner": "me"}
        store.update("a", seen, {"job": "1"})
        assert json.loads(store.path("a").read_bytes()) == {"owner": "me", "job": "1"}
        for write in (lambda: store.replace("a", seen, {}), lambda: store.delete("a", seen)):
            with pytest.raises(WriteConflict):
                write()
        now = store.read("a")
        assert now
        store.delete("a", now)
        assert store.read("a") is None


class Refused(Exception):
    """The SDK's."""


class Dynamo:
    """Keeps the calls; refuses where it is told to."""

    exceptions = SimpleNamespace(ConditionalCheckFailedException=Refused)

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.refuse = False
        self.item: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        def call(**arguments: Any) -> Any:
            self.calls.append((name, arguments))
            if self.refuse:
                raise Refused
            headers = {"HTTPHeaders": {"date": "Thu, 01 Jan 1970 00:01:40 GMT"}}
            return {"Item": self.item, "ResponseMetadata": headers}

        return call


def test_an_item_is_compared_by_the_attributes_that_stand_for_it() -> None:
    cloud = Dynamo()
    cloud.item = {"owner": {"S": "me"}, "lease_until": {"N": "7"}, "other": {"BOOL": True}}
    table = dynamodb.Table(cast("Any", SimpleNamespace(dynamodb=cloud)), "t", "claim table t", "key")
    seen = table.read("k")
    assert seen and seen.value == {"owner": "me", "lease_until": 7, "other": {"BOOL": True}}
    assert table.now() == 100
    table.create("k", FIELDS)
    table.update("k", seen, {"job": "1"}, same=("owner", "job"))
    (_, create), (_, update) = cloud.calls[1:]
    assert create["ConditionExpression"] == "attribute_not_exists(#key)"
    assert create["Item"] == {"owner": {"S": "me"}, "lease_until": {"N": "7"}, "expires": {"N": "1767312000"}}
    assert update == {
        "TableName": "t",
        "Key": {"key": {"S": "k"}},
        "UpdateExpression": "SET #job = :new_job",
        "ConditionExpression": "#owner = :owner AND attribute_not_exists(#job)",
        "ExpressionAttributeNames": {"#owner": "owner", "#job": "job"},
        "ExpressionAttributeValues": {":owner": {"S": "me"}, ":new_job": {"S": "1"}},
    }
    cloud.refuse = True
    with pytest.raises(WriteConflict, match="claim table t: put_item"):
        table.replace("k", seen, FIELDS, same=("owner",))


def test_documents_have_values_as_firestore_has_them() -> None:
    values = firestore.encode(FIELDS)
    assert values == {
        "owner": {"stringValue": "me"},
        "lease_until": {"integerValue": "7"},
        "expires": {"timestampValue": "2026-01-02T00:00:00Z"},
    }
    assert firestore.decode(values) == {"owner": "me", "lease_until": 7, "expires": values["expires"]}


@pytest.mark.parametrize("error", [Unmet("a"), Conflict("a"), NotFound("a")])
def test_a_document_that_is_another_is_changed(error: Exception) -> None:
    with pytest.raises(WriteConflict), firestore.refusals():
        raise error


class Bucket:
    """One object of a generation."""

    clock = 100.0

    def __init__(self) -> None:
        self.generations: Iterator[str] = iter("123")
        self.there: tuple[bytes, str] | None = None

    def read(self, api: str, path: str) -> tuple[bytes, str]:
        if self.there is None:
            raise NotFound(path)
        return self.there

    def write(self, bucket: str, name: str, data: bytes, *, generation: int | str) -> str:
        if generation != (self.there[1] if self.there else 0):
            raise Conflict(name)
        self.there = data, next(self.generations)
        return self.there[1]


def test_an_object_is_replaced_by_its_generation() -> None:
    objects = Objects(cast("Any", Bucket()), "b")
    assert objects.read("a") is None
    assert objects.create("a", b"1") == "1"
    with pytest.raises(WriteConflict):
        objects.create("a", b"2")
    assert objects.replace("a", Record(b"1", "1"), b"2") == "2"
    with pytest.raises(WriteConflict):
        objects.replace("a", Record(b"1", "1"), b"3")
    assert objects.read("a") == Record(b"2", "2")
