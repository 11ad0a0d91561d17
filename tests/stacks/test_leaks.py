"""What serves nobody: each reason, and what is left alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stacks.operations.inventory.google import GoogleResource
from stacks.operations.leaks.google import dollars_a_day, leaks, owner, reason

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LATER = str(int((NOW + timedelta(hours=1)).timestamp()))
BEFORE = str(int((NOW - timedelta(hours=1)).timestamp()))
QUEUE = {"accel-maker": "queues", "accel-job": "trainer-1", "accel-queue": "trainer", "accel-stack": "dev"}
JOBS = {"accel-maker": "jobs", "accel-job": "train-1", "accel-target": "tpu", "accel-expires": LATER}


def found(kind: str = "tpu", state: str = "READY", **changed: Any) -> GoogleResource:
    made = GoogleResource(
        kind=kind,
        name="train-1",
        zone="us-central1-a",
        state=state,
        labels=JOBS,
        created=NOW - timedelta(hours=3),
        machine="v5litepod-4" if kind == "tpu" else None,
        spot=False,
        api="tpu",
        path="v2/x",
        query={},
        job=("bucket", "train-1"),
    )
    return replace(made, **changed)


def runs(bucket: str, name: str) -> str | None:
    return None


def over(bucket: str, name: str) -> str | None:
    return "has ended: succeeded"


@pytest.mark.parametrize(
    "each, ended, why",
    [
        (found(), over, "its job has ended: succeeded"),
        (found(labels={**JOBS, "accel-expires": BEFORE}), runs, "was needed until 2026-11-22 11:00 UTC at the latest"),
        (found(state="PREEMPTED"), runs, "is PREEMPTED"),
        (found(labels=QUEUE), over, "its queue has ended: succeeded"),
        (found("queued resource", "SUSPENDED"), runs, "was preempted and holds its quota"),
        (found("queued resource", "FAILED", labels={}), runs, "failed and holds its quota"),
        (found("disk", "READY", used=False, job=None), runs, "no machine has it"),
    ],
)
def test_why_nobody_needs_it(each: GoogleResource, ended: Any, why: str) -> None:
    assert reason(each, ended, NOW) == why


@pytest.mark.parametrize(
    "each, ended",
    [
        (found(), runs),
        (found(labels=QUEUE), runs),
        (found("queued resource", "WAITING_FOR_RESOURCES"), runs),
        (found("disk", "READY", job=None), runs),
        # What people or stacks made is theirs, whatever it looks like.
        (found(labels={"accel-stack": "dev"}), over),
        (found(labels={}, state="PREEMPTED"), over),
        (found("disk", "READY", labels={}, used=False), over),
    ],
)
def test_what_may_be_needed_is_left_alone(each: GoogleResource, ended: Any) -> None:
    assert reason(each, ended, NOW) is None


def test_the_dearest_is_first_and_prices_are_the_catalogues() -> None:
    from accel.catalog.prices import price

    rows = leaks(iter([found("queued resource", "SUSPENDED"), found(), found(spot=True)]), over, NOW)
    known = price("gcp", "us-central1", "v5litepod-4")
    assert known.on_demand and known.spot
    assert [row.dollars_a_day for row in rows] == [known.on_demand * 24, known.spot * 24, 0.0]


def test_what_has_no_price_is_not_free() -> None:
    assert dollars_a_day(found("disk", "READY", used=False)) is None
    assert dollars_a_day(found(machine="of-tomorrow-8g")) is None
    assert dollars_a_day(found(state="PREEMPTED")) == 0.0


def test_attached_gpus_are_priced_with_their_machine() -> None:
    bare = dollars_a_day(found(machine="n1-standard-4"))
    whole = dollars_a_day(found(machine="n1-standard-4", gpus=("nvidia-tesla-t4", 1)))
    assert bare and whole and whole > bare


def test_whose_it_is() -> None:
    assert owner(found()) == "job train-1 (tpu)"
    assert owner(found(labels={"accel-stack": "dev", "accel-owner": "me"})) == "dev"
