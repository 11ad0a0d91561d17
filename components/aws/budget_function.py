"""Runs in AWS Lambda, beside accel/budget: stops the stack when AWS Budgets says that a budget is over its line.

A notification says which budget to look at, and AWS Budgets is asked what is spent. On a schedule it goes on with what
is unfinished, and looks at every budget, since a notification comes once and may be lost; but not on the first day of a
month, when a budget may still show what the last one cost. `stacks budget` uses the same levers.
"""

import json
import logging
import os
import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from accel.budget.acting import Outcome, look
from accel.budget.levers import Lever
from accel.budget.spending import Limit, Reading
from accel.budget.state import Moved, State, of_json, to_json
from accel.contract import stop

from .budget_levers import Environments, Jobs, Queues, call_patiently

SETTINGS = "STACK"
"""The variable of Settings, as JSON."""
AT_ONCE = 500
"""Jobs that one run terminates: AWS takes some fifty calls a second, and a run has its end."""


@dataclass(frozen=True)
class Settings:
    """What the stack tells its function."""

    region: str
    account: str
    table: str
    """Of the claims."""
    budgets: dict[str, dict[str, Any]]
    """The fields of Limit, by the name that AWS Budgets knows."""
    topics: dict[str, str]
    """By the ARN of each topic, the budget that publishes to it: the same name."""
    queues: list[str]
    """ARNs."""
    environments: list[str]
    """ARNs."""
    told: list[str]
    """ARNs of topics that are told what was done."""


class Unconfirmed(Exception):
    """AWS Budgets has sent a notification and does not show what it was for: Lambda calls again, twice, and after that
    the schedule does."""


class Unfinished(Exception):
    """Some calls were refused: Lambda calls again, and the schedule after that."""


def handler(event: Any, context: Any) -> dict[str, Any]:
    """For a notification of SNS, or for the schedule. What was done, and what is left."""
    settings = Settings(**json.loads(os.environ[SETTINGS]))
    sdk: Any = import_module("boto3")  # here, since a program that deploys this needs none
    now, budgets = time.time(), sdk.client("budgets")
    notified = [settings.topics[record["Sns"]["TopicArn"]] for record in event.get("Records", [])]
    names = notified or ([] if time.gmtime(now).tm_mday == 1 else list(settings.budgets))
    limits = [Limit(**settings.budgets[name]) for name in names]
    store = TableStore(sdk.client("dynamodb", region_name=settings.region), settings.table)
    done = look(limits, [read(budgets, settings, name) for name in names], levers(sdk, settings), store, now)
    _tell(sdk, settings, done)
    if done.failures:
        raise Unfinished("; ".join(done.failures))
    under = [limit.budget for limit in limits if not _known(limit.budget, done.state)] if notified else []
    if under:
        raise Unconfirmed(f"{', '.join(under)}: notified, and below the line where it stops")
    return {"done": list(done.done), "stopped": done.state.stopped}


def levers(sdk: Any, settings: Settings, most: int | None = AT_ONCE) -> list[Lever]:
    """Everything that an AWS section can stop. `most`: jobs that are terminated at once; None: all."""
    batch = sdk.client("batch", region_name=settings.region)
    return [
        Queues(batch, settings.queues),
        Environments(batch, settings.environments),
        Jobs(batch, settings.queues, most),
    ]


def read(budgets: Any, settings: Settings, name: str) -> Reading:
    """What AWS Budgets says of one budget of a month."""
    found = call_patiently(lambda: budgets.describe_budget(AccountId=settings.account, BudgetName=name))["Budget"]
    spend: dict[str, Any] = found.get("CalculatedSpend") or {}
    forecast = spend.get("ForecastedSpend")
    return Reading(
        budget=settings.budgets[name]["budget"],
        period=time.strftime("%Y-%m-01", time.gmtime()),
        amount=float(found["BudgetLimit"]["Amount"]),
        currency=found["BudgetLimit"]["Unit"],
        actual=float(spend.get("ActualSpend", {}).get("Amount", 0)),
        forecast=float(forecast["Amount"]) if forecast else None,
    )


class TableStore:
    """The state as a row of the claim table, replaced on the condition that it is the one that was read."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def load(self) -> tuple[State, int]:
        """The state, and its version: 0 where there is none."""
        key = {stop.TABLE_KEY: {"S": stop.KEY}}
        answer = call_patiently(lambda: self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True))
        item = answer.get("Item")
        return (of_json(item[stop.STATE]["S"]), int(item[stop.VERSION]["N"])) if item else (State(), 0)

    def save(self, state: State, seen: int) -> int:
        """The next version. Raises Moved."""
        item: dict[str, Any] = {
            stop.TABLE_KEY: {"S": stop.KEY},
            stop.STATE: {"S": to_json(state)},
            stop.VERSION: {"N": str(seen + 1)},
            **({stop.STOPPED: {"S": state.stopped}} if state.stopped else {}),
        }
        condition: dict[str, Any] = {
            "ConditionExpression": "attribute_not_exists(#version) OR #version = :seen",
            "ExpressionAttributeNames": {"#version": stop.VERSION},
            "ExpressionAttributeValues": {":seen": {"N": str(seen)}},
        }
        try:
            self._dynamodb.put_item(TableName=self._table, Item=item, **condition)
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            raise Moved("the state of the stop has been changed by somebody else") from None
        return seen + 1


def _known(budget: str, state: State) -> bool:
    return any(each.budget == budget for each in (*state.crossings, *state.resumed))


def _tell(sdk: Any, settings: Settings, outcome: Outcome) -> None:
    lines = [*outcome.done, *(f"failed, and tried again: {each}" for each in outcome.news)]
    if not lines:
        return
    text = "\n".join([f"Stopped: {outcome.state.stopped}", *lines, "`stacks budget resume` takes it back."])
    logging.getLogger().warning(text)
    for topic in settings.told:
        client = sdk.client("sns", region_name=topic.split(":")[3])
        call_patiently(
            lambda client=client, topic=topic: client.publish(TopicArn=topic, Subject="Budget", Message=text)
        )
