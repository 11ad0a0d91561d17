"""Whether a budget has stopped the stack: a row of the claim table."""

from typing import Any

from accel.clouds.aws.clients import Clients
from accel.clouds.aws.errors import asking
from accel.clouds.backoff import now
from accel.contract import stop
from accel.diagnostics.errors import OverLimit

LOOKED_S = 5
"""A command that submits thousands of jobs looks so often; the queues themselves are disabled a moment later."""


def refuse(clients: Clients, table: str) -> None:
    """Raises OverLimit where the stack is stopped. One GetItem every few seconds."""
    if now() - clients.looked.get(table, -LOOKED_S) < LOOKED_S:
        return
    with asking(f"claim table {table}: GetItem"):
        answer = clients.dynamodb.get_item(TableName=table, Key={stop.TABLE_KEY: {"S": stop.KEY}}, ConsistentRead=True)
    item: dict[str, Any] = answer.get("Item") or {}
    if stop.STOPPED in item:
        raise OverLimit(
            f"the stack takes no new jobs: {item[stop.STOPPED]['S']}",
            "`stacks budget status` says what was stopped, `stacks budget resume` takes jobs again",
        )
    clients.looked[table] = now()
