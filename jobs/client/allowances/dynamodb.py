"""A ledger in the stack's DynamoDB table. Balance and reservations are items of their own, and one TransactWriteItems
writes all of them or none. A condition cannot add, so the balance is compared with the highest value that leaves room:
the limit less the amount to reserve. Sources:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html,
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from accel.clouds.aws.clients import Clients, Timing
from accel.clouds.conditional_store.dynamodb import Table, encode
from accel.contract import allowances as columns
from accel.diagnostics.errors import Throttled

from .reservation import Balance, Change, Hold, balance_change, balance_of, parse_hold, serialize_hold

Item = dict[str, Any]

READ_AT_ONCE = 100
"""Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html"""
UNMET = frozenset({"None", "ConditionalCheckFailed", "TransactionConflict"})
"""Cancellation reasons of a transaction that changed nothing, since the items have changed since they were read or
somebody else is writing them. Source:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html"""
CROWDED = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError"})
"""Cancellation reasons of a transaction that changed nothing, since there are too many calls."""


class TableLedger:
    """Ledger in a DynamoDB table; `region` and `table` are those of the contract."""

    shared = True

    def __init__(self, region: str, table: str, timing: Timing | None = None) -> None:
        self._store = Table(Clients(region, timing or Timing()), table, f"ledger {table}")
        self._table = table

    def now(self) -> float:
        """Return DynamoDB's own time: the clocks of two machines that submit may be minutes apart."""
        return self._store.now()

    def balance(self, team: str, period: str) -> Balance:
        key = _key(team, f"{columns.BALANCE}{period}")
        item: Item = self._store.ask("get_item", Key=key, TableName=self._table, ConsistentRead=True).get("Item") or {}
        return Balance(*(int(item[name]["N"]) if name in item else 0 for name in (columns.USED, columns.SETTLED)))

    def read(self, team: str, keys: Sequence[str]) -> dict[str, Hold]:
        found: dict[str, Hold] = {}
        for start in range(0, len(keys), READ_AT_ONCE):
            wanted = [_key(team, f"{columns.HOLD}{key}") for key in keys[start : start + READ_AT_ONCE]]
            while wanted:
                answer = self._store.ask(
                    "batch_get_item", RequestItems={self._table: {"Keys": wanted, "ConsistentRead": True}}
                )
                items: list[Item] = answer.get("Responses", {}).get(self._table, [])
                found |= {hold.key: hold for hold in map(_hold, items)}
                wanted = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
        return found

    def holds(self, team: str) -> list[Hold]:
        found: list[Hold] = []
        more: Item = {}
        while True:
            answer = self._store.ask(
                "query",
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="#team = :team AND begins_with(#entry, :hold)",
                ExpressionAttributeNames={"#team": columns.TEAM, "#entry": columns.ENTRY},
                ExpressionAttributeValues={":team": {"S": team}, ":hold": {"S": columns.HOLD}},
                **more,
            )
            found += map(_hold, answer.get("Items", []))
            if not answer.get("LastEvaluatedKey"):
                return found
            more = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def add(self, holds: Sequence[Hold], limit: int | None) -> None:
        by = balance_of(holds)
        room = None if limit is None else limit - by.used
        if room is not None and room < 0:
            return
        absent = {"ConditionExpression": "attribute_not_exists(#entry)", **_names(entry=columns.ENTRY)}
        puts = [{"Put": {"TableName": self._table, "Item": self._item(hold), **absent}} for hold in holds]
        self._write([*self._moved(holds[0], by, room), *puts])

    def change(self, changes: Sequence[Change]) -> None:
        actions: list[Item] = []
        for seen, new in changes:
            same = {
                "TableName": self._table,
                "ConditionExpression": "#version = :version",
                "ExpressionAttributeValues": {":version": {"S": seen.version}},
                **_names(version=columns.VERSION),
            }
            key = _key(seen.team, f"{columns.HOLD}{seen.key}")
            actions.append(
                {"Delete": {**same, "Key": key}} if new is None else {"Put": {**same, "Item": self._item(new)}}
            )
        self._write([*self._moved(changes[0].seen, balance_change(changes), None), *actions])

    def _moved(self, of: Hold, by: Balance, room: int | None) -> list[Item]:
        if by == Balance():
            return []
        update: Item = {
            "TableName": self._table,
            "Key": _key(of.team, f"{columns.BALANCE}{of.period}"),
            "UpdateExpression": "ADD #used :used, #settled :settled",
            "ExpressionAttributeValues": {":used": _number(by.used), ":settled": _number(by.settled)},
            **_names(used=columns.USED, settled=columns.SETTLED),
        }
        if room is not None:
            update["ConditionExpression"] = "attribute_not_exists(#used) OR #used <= :room"
            update["ExpressionAttributeValues"][":room"] = _number(room)
        return [{"Update": update}]

    def _write(self, actions: list[Item]) -> None:
        """Rely on the token that botocore gives each transaction, by which DynamoDB recognizes its own retries."""
        client = self._store.client
        with self._store.errors("TransactWriteItems"):
            try:
                client.transact_write_items(TransactItems=actions)
            except client.exceptions.TransactionCanceledException as error:
                reasons = {str(each.get("Code")) for each in error.response.get("CancellationReasons", [])}
                if reasons & CROWDED:
                    raise Throttled(f"ledger {self._table}: {', '.join(sorted(reasons & CROWDED))}") from error
                if not reasons or reasons - UNMET:
                    raise

    def _item(self, hold: Hold) -> Item:
        item = _key(hold.team, f"{columns.HOLD}{hold.key}")
        item |= encode({columns.TERMS: serialize_hold(hold), columns.VERSION: uuid4().hex})
        if not hold.open:
            item[columns.EXPIRES] = _number(int(self.now()) + columns.REMEMBERED_DAYS * 86_400)
        return item


def _key(team: str, entry: str) -> Item:
    return encode({columns.TEAM: team, columns.ENTRY: entry})


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def _names(**names: str) -> Item:
    return {"ExpressionAttributeNames": {f"#{name}": column for name, column in names.items()}}


def _hold(item: Mapping[str, Any]) -> Hold:
    return parse_hold(item[columns.TERMS]["S"], item[columns.VERSION]["S"])
