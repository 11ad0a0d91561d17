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
from accel.budget.levers import FOREIGN, RUNNING, Change, Lever, LeverFailed
from accel.budget.spending import Reading
from accel.budget.state import Moved, State

from . import notices
from .cloud import CallRefused, Cloud, NotThere
from .clusters import Pools, Queues
from .plan import Plan
from .store import BucketStore
from .waiting import Records, Regional

BUCKET = "BUCKET"
"""Variable: the bucket of the stop."""
ATTEMPTS = 3
_SERVICES = ("google-batch", "vertex")


class Unfinished(Exception):
    """The stop is not through: the message is delivered again for a day, at the latest after ten minutes, and the
    budget's next message goes on after that."""


def levers(plan: Plan, cloud: Cloud) -> list[Lever]:
    """Every lever of a stack; what it does not have has nothing to change."""
    return [
        Pools(cloud, plan.clusters),
        Queues(cloud, plan.clusters),
        TpuRequests(cloud, plan.tpu_queues),
        *(Regional(cloud, plan, service, "waiting") for service in _SERVICES),
        Records(cloud, plan, "waiting"),
        Queues(cloud, plan.clusters, drain=True),
        *(Regional(cloud, plan, service, "running") for service in _SERVICES),
        Records(cloud, plan, "running"),
    ]


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
    """A CloudEvent with a message of Pub/Sub. Raises Unfinished, and what the cloud refuses, so that it comes again."""
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
    now, lines = notices.crossed(last, read, data)
    pulled = levers(plan, cloud)
    outcome = _looked(plan, [read], pulled, store)
    for text in (*outcome.done, *(f"failed: {each}" for each in outcome.failures)):
        print(f"accel: {text}")  # noqa: T201
    notices.chat(cloud, budget, read, lines, outcome)
    notices.save(cloud, store.bucket, {**before, budget.key: now})
    if left := [*outcome.failures, *_unfinished(outcome.state, pulled)]:
        raise Unfinished("; ".join(left))


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
        except Moved:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError


WAITING = ("CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES")
"""Source: https://docs.cloud.google.com/tpu/docs/queued-resources"""
DELETED, INVALID = "deleted", 400
_ASKED = ("tpu", "spot", "guaranteed", "queueingPolicy", "reservationName", "runDuration")
_NODE = (
    *("description", "acceleratorType", "acceleratorConfig", "runtimeVersion", "networkConfig", "networkConfigs"),
    *("cidrBlock", "serviceAccount", "schedulingConfig", "dataDisks", "labels", "metadata", "tags"),
    *("shieldedInstanceConfig", "bootDiskConfig"),
)
"""What a request may say; the rest of an answer is Google's. Source: the schemas QueuedResource and Node of
https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources"""


class TpuRequests:
    """A request that waits is deleted. Taken back it is made again under its name, at the end of Google's queue."""

    stage, kind = "waiting", "tpu-requests"

    def __init__(self, cloud: Cloud, names: list[str]) -> None:
        self._cloud, self._names = cloud, names

    def plan(self) -> list[Change]:
        return [
            Change(
                self.stage, self.kind, name, _asked(found), DELETED, f"TPU request {_short(name)}: {state} to deleted"
            )
            for name in self._names
            if (found := self._found(name)) and (state := found.get("state", {}).get("state")) in WAITING
        ]

    def pull(self, change: Change) -> None:
        try:
            self._cloud.call("DELETE", "tpu", f"v2/{change.name}", force="true")
        except NotThere:
            return

    def restore(self, change: Change) -> str | None:
        at, _, short = change.name.rpartition("/")
        if change.name not in self._names:
            return f"TPU request {short} {FOREIGN}"
        if found := self._found(change.name):
            if found.get("state", {}).get("state") == "DELETING":
                raise LeverFailed(f"TPU request {short} is still being deleted")
            return None
        try:
            self._cloud.call("POST", "tpu", f"v2/{at}", change.before, queuedResourceId=short)
        except CallRefused as refused:
            if refused.status != INVALID:
                raise
            # As one that was valid until a time which is past.
            return f"{refused}; `pulumi up --refresh` asks for it as the stack has it now"
        return None

    def _found(self, name: str) -> dict[str, Any] | None:
        try:
            return self._cloud.call("GET", "tpu", f"v2/{name}")
        except NotThere:
            return None


def _asked(found: dict[str, Any]) -> dict[str, Any]:
    """The body with which it was asked for."""
    specs = [
        {
            **{name: spec[name] for name in ("parent", "nodeId", "multisliceParams") if name in spec},
            "node": {name: spec["node"][name] for name in _NODE if name in spec["node"]},
        }
        for spec in found["tpu"]["nodeSpec"]
    ]
    return {**{name: found[name] for name in _ASKED if name in found}, "tpu": {"nodeSpec": specs}}


def _short(name: str) -> str:
    return name.rpartition("/")[2]
