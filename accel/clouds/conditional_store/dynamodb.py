"""Items of a DynamoDB table. They have no version: a condition names the attributes that must not have changed."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ..aws.clients import Client, Clients
from ..aws.errors import asking
from . import Fields, Record, WriteConflict

Item = dict[str, Any]


class Table:
    """One table. `key` is its partition key; `title` begins error messages."""

    def __init__(self, clients: Clients, name: str, title: str, key: str = "") -> None:
        self.name = name
        self._clients, self._title, self._key = clients, title, key
        self._creation = threading.Lock()
        self._last = threading.local()

    def now(self) -> float:
        """Return the server's time at this thread's last read."""
        return float(getattr(self._last, "clock", time.time()))

    def read(self, key: str) -> Record[Fields] | None:
        """Read strongly consistent."""
        where = {"TableName": self.name, "Key": self._key_of(key), "ConsistentRead": True}
        item: Item | None = self.ask("get_item", "GetItem", **where).get("Item")
        return Record(decode(item), "") if item else None

    def create(self, key: str, value: Fields) -> None:
        names = {"#key": self._key}
        self._write("put_item", Item=encode(value), **_if("attribute_not_exists(#key)", names, {}))

    def replace(self, key: str, seen: Record[Fields], value: Fields, *, same: Sequence[str] = ()) -> None:
        self._write("put_item", Item=encode(value), **_if_same(seen, same))

    def update(self, key: str, seen: Record[Fields], fields: Fields, *, same: Sequence[str] = ()) -> None:
        names = {f"#{name}": name for name in fields}
        values = {f":new_{name}": value for name, value in encode(fields).items()}
        change = "SET " + ", ".join(f"#{name} = :new_{name}" for name in fields)
        condition = _if_same(seen, same, names, values)
        self._write("update_item", Key=self._key_of(key), UpdateExpression=change, **condition)

    def delete(self, key: str, seen: Record[Fields], *, same: Sequence[str] = ()) -> None:
        self._write("delete_item", Key=self._key_of(key), **_if_same(seen, same))

    def ask(self, operation: str, doing: str = "", **arguments: Any) -> Item:
        """Call a read operation, and record the server's time."""
        with self.errors(doing or operation):
            answer: Item = getattr(self.client, operation)(**arguments)
            date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        self._last.clock = time.time()
        with suppress(ValueError, TypeError):
            self._last.clock = parsedate_to_datetime(date).timestamp()
        return answer

    def errors(self, doing: str) -> AbstractContextManager[None]:
        return asking(f"{self._title}: {doing}")

    @property
    def client(self) -> Client:
        with self._creation:
            return self._clients.dynamodb

    def _write(self, operation: str, **arguments: Any) -> None:
        with self.errors(operation):
            client = self.client
            try:
                getattr(client, operation)(TableName=self.name, **arguments)
            except client.exceptions.ConditionalCheckFailedException as error:
                raise WriteConflict(f"{self._title}: {operation}: the item is not as it was read") from error

    def _key_of(self, key: str) -> Item:
        return {self._key: {"S": key}}


def encode(fields: Fields) -> Item:
    """Convert fields; a time becomes a number of seconds."""
    return {name: _attribute(value) for name, value in fields.items()}


def decode(item: Mapping[str, Mapping[str, Any]]) -> Fields:
    """Convert strings and numbers; other attributes stay as they are."""
    return {name: _value(attribute) for name, attribute in item.items()}


def _attribute(value: str | float | datetime) -> dict[str, str]:
    if isinstance(value, str):
        return {"S": value}
    return {"N": str(int(value.timestamp() if isinstance(value, datetime) else value))}


def _value(attribute: Mapping[str, Any]) -> Any:
    if "N" in attribute:
        with suppress(ValueError):
            return float(attribute["N"])
    return attribute.get("S", attribute or None)


def _if(condition: str, names: Mapping[str, str], values: Mapping[str, Any]) -> Item:
    expression: Item = {"ConditionExpression": condition, "ExpressionAttributeNames": dict(names)}
    return expression | ({"ExpressionAttributeValues": dict(values)} if values else {})


def _if_same(
    seen: Record[Fields], same: Sequence[str], names: Mapping[str, str] | None = None, values: Item | None = None
) -> Item:
    """Build the condition that each attribute in `same` still has its previous value, or is still absent."""
    there = {name: seen.value[name] for name in same if name in seen.value}
    condition = " AND ".join(
        f"#{name} = :{name}" if name in there else f"attribute_not_exists(#{name})" for name in same
    )
    expected = {f":{name}": value for name, value in encode(there).items()}
    return _if(condition, {f"#{name}": name for name in same} | dict(names or {}), expected | (values or {}))
