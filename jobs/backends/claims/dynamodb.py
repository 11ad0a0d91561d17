"""Claims in the stack's DynamoDB table."""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from email.utils import parsedate_to_datetime
from typing import Any

from accel.clouds.aws.clients import Client
from accel.clouds.aws.errors import asking
from accel.contract import claims as columns

from .claim import Claim, claim_of

REMEMBERED_S = columns.REMEMBERED_DAYS * 86_400


class TableClaims:
    """One row for each key."""

    shared = True

    def __init__(self, dynamodb: Client, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._clock = time.time()

    def alone(self, key: str) -> AbstractContextManager[None]:
        """Nothing: the row itself keeps others out."""
        return nullcontext()

    def now(self) -> float:
        """DynamoDB's own time: the clocks of two machines that submit may be minutes apart."""
        return self._clock

    def read(self, key: str) -> Claim | None:
        """One strongly consistent GetItem."""
        with self._asking("GetItem"):
            answer = self._dynamodb.get_item(TableName=self._table, Key=_key(key), ConsistentRead=True)
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        self._clock = parsedate_to_datetime(date).timestamp() if date else time.time()
        item = answer.get("Item")
        return _of_item(item, f"claim {key} in table {self._table}") if item else None

    def put(self, claim: Claim) -> None:
        """PutItem on the condition that the key is new."""
        names = {"#key": columns.KEY}
        self._write("put_item", Item=self._item(claim), **_if("attribute_not_exists(#key)", names))

    def take_over(self, seen: Claim, claim: Claim) -> None:
        """PutItem on the condition that owner and lease are those seen."""
        names = {"#owner": columns.OWNER, "#lease": columns.LEASE_UNTIL, "#job": columns.JOB_ID}
        values = {":owner": {"S": seen.owner}, ":lease": _number(seen.lease_until)}
        condition = "#owner = :owner AND #lease = :lease AND attribute_not_exists(#job)"
        self._write("put_item", Item=self._item(claim), **_if(condition, names, values))

    def finish(self, claim: Claim, job_id: str) -> None:
        """UpdateItem of the job's id."""
        self._update(claim, "SET #job = :job", {}, {":job": {"S": job_id}})

    def end_lease(self, claim: Claim) -> None:
        """UpdateItem of the lease."""
        ended = {":ended": _number(self._clock - 1)}
        self._update(claim, "SET #lease = :ended", {"#lease": columns.LEASE_UNTIL}, ended)

    def forget(self, claim: Claim) -> None:
        """DeleteItem."""
        self._write("delete_item", Key=_key(claim.key), **_if_owned(claim, {}, {}))

    def _update(self, claim: Claim, change: str, names: Mapping[str, str], values: Mapping[str, Any]) -> None:
        condition = _if_owned(claim, names, values)
        self._write("update_item", Key=_key(claim.key), UpdateExpression=change, **condition)

    def _write(self, operation: str, **arguments: Any) -> None:
        with self._asking(operation):
            try:
                getattr(self._dynamodb, operation)(TableName=self._table, **arguments)
            except self._dynamodb.exceptions.ConditionalCheckFailedException:
                return

    def _asking(self, operation: str) -> AbstractContextManager[None]:
        return asking(f"claim table {self._table}: {operation}")

    def _item(self, claim: Claim) -> dict[str, Any]:
        return {
            **_key(claim.key),
            columns.SPEC_HASH: {"S": claim.spec_hash},
            columns.OWNER: {"S": claim.owner},
            columns.LEASE_UNTIL: _number(claim.lease_until),
            columns.JOB_NAME: {"S": claim.job_name},
            columns.EXPIRES: _number(self._clock + REMEMBERED_S),
        }


def _key(key: str) -> dict[str, Any]:
    return {columns.KEY: {"S": key}}


def _number(value: float) -> dict[str, str]:
    return {"N": str(int(value))}


def _of_item(item: Mapping[str, Mapping[str, Any]], where: str) -> Claim:
    values = {name: item.get(column, {}) for name, column in columns.BY_FIELD.items()}
    lease = values["lease_until"].get("N")
    texts = {name: value.get("S", value or None) for name, value in values.items()}
    return claim_of(texts | {"lease_until": float(lease) if lease else None}, where)


def _if(condition: str, names: Mapping[str, str], values: Mapping[str, Any] | None = None) -> dict[str, Any]:
    expression: dict[str, Any] = {"ConditionExpression": condition, "ExpressionAttributeNames": dict(names)}
    return expression | ({"ExpressionAttributeValues": dict(values)} if values else {})


def _if_owned(claim: Claim, names: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    return _if(
        "#owner = :owner AND attribute_not_exists(#job)",
        {"#owner": columns.OWNER, "#job": columns.JOB_ID, **names},
        {":owner": {"S": claim.owner}, **values},
    )
