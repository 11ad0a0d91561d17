"""Called with every message of a budget, which come several times a day whatever is spent.

Google counts what was spent hours late, so a budget stops late too. Messages that come twice, or out of order, do no
harm: what is done already is not done again, and each call goes on with what is unfinished.
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
"""Variable: the bucket of the stop."""
ATTEMPTS = 3


class UnfinishedStop(Exception):
    """The stop is not through: the message is delivered again for a day, at the latest after ten minutes, and the
    budget's next message goes on after that."""


def reading(key: str, data: dict[str, Any]) -> Reading:
    """What a message says. Of a forecast it says the highest threshold that it is over, which is all that is known.
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
    """A CloudEvent with a message of Pub/Sub. Raises UnfinishedStop, and what the cloud refuses, so that it comes
    again."""
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
    """Levers that are to be looked at again: pools with nodes, and running work whose grace period is not over."""
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
