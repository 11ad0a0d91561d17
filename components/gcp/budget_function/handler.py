"""Entry point of the function. Every message of a budget calls it, several times a day, whatever is spent.

Google counts spending hours late, so a budget stops the stack late too. Messages that arrive twice, or out of order, do
no harm: finished steps are not repeated, and each call continues with what is unfinished.
"""

from __future__ import annotations

import base64
import json
import os
import time
from typing import Any

from accel.budget import acting
from accel.budget.acting import Outcome
from accel.budget.levers import RUNNING, Lever
from accel.budget.spending import Reading
from accel.budget.state import State, StateConflict

from . import notices
from .cloud import Cloud
from .levers import levers
from .plan import Plan
from .store import BucketStore

BUCKET = "BUCKET"
"""Variable with the name of the bucket of the stop."""
ATTEMPTS = 3


class UnfinishedStop(Exception):
    """The stop is not finished. The message is delivered again for a day, each time after at most ten minutes; after
    that, the budget's next message continues the stop."""


def reading(key: str, data: dict[str, Any]) -> Reading:
    """Return the reading in a message. For the forecast, a message has only the highest threshold that is exceeded.
    Source: https://docs.cloud.google.com/billing/docs/how-to/budgets-programmatic-notifications#notification-format"""
    amount, over = float(data["budgetAmount"]), data.get("forecastThresholdExceeded")
    return Reading(
        budget=key,
        period=str(data["costIntervalStart"])[:10],
        amount=amount,
        currency=str(data["currencyCode"]),
        actual=float(data["costAmount"]),
        forecast=None if over is None else float(over) * amount,
    )


def handler(event: Any) -> None:
    """Handle a CloudEvent with a Pub/Sub message. Raise UnfinishedStop, and the cloud's refusals, so that the message
    is delivered again."""
    message = event.data["message"]
    data, named = json.loads(base64.b64decode(message["data"])), message.get("attributes", {}).get("budgetId")
    cloud = Cloud()
    store = BucketStore(cloud, os.environ[BUCKET])
    plan = store.plan()
    budget = next((each for each in plan.budgets if each.id == named), None)
    if budget is None:
        print(f"accel: {named} ({data.get('budgetDisplayName')}) is no budget of this stack")  # noqa: T201
        return
    read = reading(budget.key, data)
    before = notices.load(cloud, store.bucket)
    if (last := before.get(budget.key)) and read.period < last.reading.period:
        print(f"accel: {budget.key}: the period since {read.period} is over")  # noqa: T201
        return
    now, lines = notices.next_notices(last, read, data)
    pulled = levers(plan, cloud)
    outcome = _looked(plan, [read], pulled, store)
    for text in (*outcome.done, *(f"failed: {each}" for each in outcome.failures)):
        print(f"accel: {text}")  # noqa: T201
    notices.chat(cloud, budget, read, lines, outcome)
    notices.save(cloud, store.bucket, {**before, budget.key: now})
    if left := [*outcome.failures, *_unfinished(outcome.state, pulled)]:
        raise UnfinishedStop("; ".join(left))


def _unfinished(state: State, pulled: list[Lever]) -> list[str]:
    """Return a line for each lever to check again: pools with nodes, and running work whose grace period is not
    over."""
    if state.stopped is None:
        return []
    ends = state.running_at is not None
    return [
        f"{each.kind} is not through"
        for each in pulled
        if each.kind not in state.finished and (ends or each.stage != RUNNING)
    ]


def _looked(plan: Plan, readings: list[Reading], pulled: list[Lever], store: BucketStore) -> Outcome:
    for attempt in range(ATTEMPTS):
        try:
            return acting.look(plan.limits, readings, pulled, store, time.time())
        except StateConflict:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError
