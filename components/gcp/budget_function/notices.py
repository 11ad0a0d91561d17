"""Last reading of each budget, and the thresholds that its chat was notified of.

Readings are kept because Google cannot be asked for the spending: it only sends messages.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from dataclasses import asdict, dataclass
from typing import Any

from accel.budget.acting import Outcome
from accel.budget.levers import LeverError
from accel.budget.spending import Reading

from .cloud import Cloud, NotThere, path_segment
from .plan import FOLDER, PlannedBudget

TOLD = f"{FOLDER}/told.json"


@dataclass(frozen=True)
class NoticeState:
    """Last reading of one budget, and the highest thresholds that its chat was notified of in that period."""

    reading: Reading
    actual: float = 0.0
    forecast: float = 0.0


def load(cloud: Cloud, bucket: str) -> dict[str, NoticeState]:
    """Return the states by the author's keys; none before the first message."""
    try:
        data, _ = cloud.send("GET", "storage", f"b/{path_segment(bucket)}/o/{path_segment(TOLD)}", alt="media")
    except NotThere:
        return {}
    found: dict[str, dict[str, Any]] = json.loads(data)
    return {
        key: NoticeState(Reading(**each["reading"]), each["actual"], each["forecast"]) for key, each in found.items()
    }


def save(cloud: Cloud, bucket: str, told: dict[str, NoticeState]) -> None:
    """Replace all stored states: messages arrive one at a time, and the last one counts."""
    data = json.dumps({key: asdict(each) for key, each in told.items()}, sort_keys=True).encode()
    cloud.send("POST", "storage-upload", f"b/{path_segment(bucket)}/o", data, uploadType="media", name=TOLD)


def next_notices(before: NoticeState | None, reading: Reading, data: dict[str, Any]) -> tuple[NoticeState, list[str]]:
    """Return the state after a message, and a line for each threshold that it is the first to report."""
    old = before if before and before.reading.period == reading.period else NoticeState(reading)
    actual = max(old.actual, float(data.get("alertThresholdExceeded", 0)))
    forecast = max(old.forecast, float(data.get("forecastThresholdExceeded", 0)))
    lines = [f"over {actual:.0%} of the amount"] if actual > old.actual else []
    lines += [f"expected to come over {forecast:.0%} of the amount"] if forecast > old.forecast else []
    return NoticeState(reading, actual, forecast), lines


def chat(cloud: Cloud, budget: PlannedBudget, reading: Reading, lines: list[str], outcome: Outcome) -> None:
    """Post to the budget's chat what was crossed and what was done. A failure is printed and not raised."""
    happened = [*lines, *outcome.done, *(f"failed, and tried again: {each}" for each in outcome.news)]
    if budget.chat_secret is None or not happened:
        return
    spent = f"{reading.actual:,.2f} of {reading.amount:,.2f} {reading.currency} since {reading.period}"
    text = "\n".join([f"*{budget.display_name}*: {spent}", *happened])
    try:
        found = cloud.call("GET", "secretmanager", f"v1/{budget.chat_secret}/versions/latest:access")
        address = base64.b64decode(found["payload"]["data"]).decode().strip()
        # Source: https://developers.google.com/workspace/chat/quickstart/webhooks
        body, kind = json.dumps({"text": text}).encode(), {"Content-Type": "application/json; charset=UTF-8"}
        urllib.request.urlopen(urllib.request.Request(address, body, kind), timeout=10).close()  # noqa: S310
    except (LeverError, OSError, ValueError) as error:
        # Its text may have the address, which is a secret.
        print(f"accel: the chat was not told: {type(error).__name__}")  # noqa: T201
