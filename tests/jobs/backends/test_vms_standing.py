"""The state machine of TPUs that a stack declares: they have no end of their own, and are asked for with pauses."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.backends.vm.record import Attempt, Record
from jobs.backends.vm.state_machine import MachineState, Make, Wait, Write, decide
from jobs.backends.vm.tpu.queued_resources import queued_resource

BUCKET = "acme-jobs"
NOW = datetime(2026, 11, 22, tzinfo=UTC)
Json = dict[str, Any]
NODE = {"acceleratorType": "v5litepod-16", "labels": {"team": "vision"}, "metadata": {}, "networkConfig": {}}
BODY: dict[str, Any] = {
    "bucket": BUCKET,
    "standing": {"until": None},
    "project": "accel-sandbox",
    "zones": ["us-central1-a"],
    "hosts": 8,
    "spot": True,
    "lost_retries": None,
    "machine": {
        "node": NODE,
        "node_id": "accel-prod-trainer",
        "subnetworks": {"us-central1": "projects/p/regions/us-central1/subnetworks/s"},
        "slices": 2,
        "valid_s": None,
        "reservation": None,
        "guaranteed": False,
    },
}


def record(**changes: Any) -> Record:
    body = {**BODY, **changes}
    first = Attempt(number=1, zone="us-central1-a", name="trainer-1", planned=NOW.isoformat())
    return Record("tpu-queue", "", "trainer", "trainer", "k", "h", body, NOW.isoformat(), (first,))


MACHINE = BODY["machine"]


def test_valid_until_and_valid_for_and_the_tiers_are_the_apis_fields() -> None:
    until = "2026-12-01T00:00:00+00:00"
    made = record(spot=False, standing={"until": until}, machine={**MACHINE, "guaranteed": True})
    asked = queued_resource(made, made.last)
    assert asked["queueingPolicy"] == {"validUntilTime": until} and asked["guaranteed"] == {} and "spot" not in asked
    timed = record(spot=False, machine={**MACHINE, "valid_s": 7200, "reservation": "mine"})
    asked = queued_resource(timed, timed.last)
    assert asked["queueingPolicy"] == {"validUntilDuration": "7200s"}
    assert asked["reservationName"] == "projects/accel-sandbox/locations/us-central1-a/reservations/mine"


def test_a_zone_that_has_none_is_asked_again_after_a_while() -> None:
    made = record().with_last(state="made", made=NOW.isoformat())
    failed = decide(made, MachineState("failed", "FAILED", "no more capacity", stockout=True), {}, NOW)
    assert isinstance(failed, Write) and failed.record.last.outcome == "no-capacity"
    again = decide(failed.record.with_last(state="gone"), MachineState("absent", ""), {}, NOW)
    assert isinstance(again, Write) and again.record.last.number == 2
    early, late = NOW + timedelta(seconds=299), NOW + timedelta(seconds=300)
    assert isinstance(decide(again.record, MachineState("absent", ""), {}, early), Wait)
    assert isinstance(decide(again.record, MachineState("absent", ""), {}, late), Make)


@pytest.mark.parametrize("limit", [{"standing": {"until": "2026-11-22T02:00:00+00:00"}},
                                   {"machine": {**MACHINE, "valid_s": 7200}}])  # fmt: skip
def test_a_request_whose_time_is_over_is_asked_for_no_more(limit: Json) -> None:
    made = record(**limit).with_last(state="made", made=NOW.isoformat())
    later = NOW + timedelta(hours=2)
    failed = decide(made, MachineState("failed", "FAILED", "valid-until", stockout=True), {}, later)
    assert isinstance(failed, Write) and failed.record.last.outcome == "expired"
    ended = decide(failed.record.with_last(state="gone"), MachineState("absent", ""), {}, later)
    assert isinstance(ended, Write) and ended.record.ended and ended.record.outcome == "failed"


def test_what_ran_before_its_time_was_over_is_not_asked_for_after_it() -> None:
    made = record(standing={"until": "2026-11-22T02:00:00+00:00"})
    lost = made.with_last(state="gone", outcome="lost", started=NOW.isoformat(), ended=NOW.isoformat())
    again = decide(lost, MachineState("absent", ""), {}, NOW + timedelta(hours=3))
    assert isinstance(again, Write)
    over = decide(again.record, MachineState("absent", ""), {}, NOW + timedelta(hours=3))
    assert isinstance(over, Write) and over.record.last.outcome == "expired"


def test_a_job_knows_nothing_of_standing() -> None:
    plain = replace(record(), body={name: value for name, value in BODY.items() if name != "standing"})
    assert plain.standing is None
