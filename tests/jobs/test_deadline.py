"""Deadline-aware Spot: the policy's arithmetic, the work left by what a job prints, and what a job file may say."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.client.deadline.follow import remaining_work
from jobs.model.deadline import decide, look_s, shortest_deadline_s
from jobs.model.job import Job
from tests.jobs.deadline_lines import printed

HOUR = 3600


# --- policy


@given(st.floats(0, 1e6), st.floats(1, 1e6), st.floats(1, 1e5), st.floats(0, 1e6), st.floats(0, 1), st.floats(0, 1))
def test_a_job_that_stays_can_still_be_moved_in_time_at_the_next_look(
    now: float, work: float, changeover: float, more: float, part: float, works: float
) -> None:
    deadline = now + work + changeover + more
    if decide(now, deadline, work, changeover).move:
        assert more <= look_s(changeover) * (1 + 1e-9)
        return
    later = now + part * look_s(changeover)
    left_then = work - works * (later - now)
    assert later + changeover + left_then <= deadline + 1e-6 * deadline


def test_a_deadline_that_is_just_long_enough_begins_on_spot_and_a_shorter_one_does_not() -> None:
    needed = shortest_deadline_s(HOUR, 900)
    assert needed == HOUR + 900 + 30 and shortest_deadline_s(HOUR, 10) == HOUR + 11
    assert decide(0, needed, HOUR, 900).move, "at its first look, before which nothing was lost"
    assert not decide(0, needed + 1, HOUR, 900).move
    assert decide(0, needed + 1, HOUR, 900, every_s=60).move, "who looks less often moves earlier"


def test_attempts_for_its_own_failures_are_not_lent_to_spot() -> None:
    assert not decide(0, 1e6, HOUR, 900, lost_left=1).move
    found = decide(0, 1e6, HOUR, 900, lost_left=0)
    assert found.move and "its own failures" in found.why


# --- work left


def test_what_is_saved_counts_and_what_is_only_done_does_not() -> None:
    lines = printed({"step": 10, "steps": 100, "event": "checkpoint"}, {"step": 19, "steps": 100})
    found = remaining_work(lines, HOUR)
    assert (found.work_s, found.told) == (0.9 * HOUR, "saved step 10 of 100")
    assert remaining_work(printed({"step": 19, "steps": 100}), HOUR).work_s == pytest.approx(0.81 * HOUR)
    assert remaining_work([("", "nothing of the kind")], HOUR).work_s == HOUR


def test_a_job_that_is_slower_than_its_file_says_has_more_left() -> None:
    slow = printed(*({"step": step, "steps": 100, "at": 100.0 * step} for step in range(11)))
    assert remaining_work(slow, HOUR).work_s == pytest.approx(90 * 100)
    fast = printed(*({"step": step, "steps": 100, "at": 1.0 * step} for step in range(11)))
    assert remaining_work(fast, HOUR).work_s == pytest.approx(0.9 * HOUR), (
        "its file is believed where it asks for more time"
    )
    assert remaining_work(fast, HOUR, measured_alone=True).work_s == pytest.approx(90), (
        "a limit is not how long it takes"
    )


def test_the_time_between_two_attempts_was_not_spent_on_steps() -> None:
    first = printed(*({"step": step, "steps": 100, "at": 1.0 * step} for step in range(11)))
    again = printed(*({"step": 10 + step, "steps": 100, "at": 9000.0 + step} for step in range(3)))
    for between in (printed({"event": "resume", "step": 10, "at": 8999.0}), []):
        second = again if between else [("attempt 2", text) for _, text in again]
        assert remaining_work([*first, *between, *second], 100, measured_alone=True).work_s == pytest.approx(88)


def test_a_job_that_goes_back_further_than_its_checkpoint_is_not_believed() -> None:
    lines = printed({"step": 50, "steps": 100, "event": "checkpoint"}, {"step": 1, "steps": 100})
    assert remaining_work(lines, HOUR).work_s == pytest.approx(0.99 * HOUR)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["step", "steps", "at", "event"]),
            st.one_of(st.integers(-5, 50), st.floats(), st.booleans(), st.none(), st.sampled_from(["checkpoint"])),
        )
    )
)
def test_whatever_a_program_prints_is_a_number_of_seconds(told: list[dict[str, Any]]) -> None:
    lines = [("", "@accel " + json.dumps({"at": 1, **each})) for each in told]
    found = remaining_work(lines, HOUR)
    assert 0 <= found.work_s < math.inf


# --- the job file


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"spot": "prefer"}, "spot: prefer is Spot for as long as a deadline allows it: write deadline"),
        ({"deadline": "1h"}, "deadline: is for a job with spot: prefer"),
        ({"spot": True, "changeover_s": 60}, "changeover_s: is for a job with spot: prefer"),
        ({"spot": "prefer", "deadline": "1h"}, "write work_s, or timeout_s"),
        ({"spot": "prefer", "deadline": "1h", "work_s": "50m"}, "work_s 3000 and changeover_s 900 need 3930"),
        ({"spot": "prefer", "deadline": "1h", "timeout_s": "50m"}, "timeout_s 3000 and changeover_s 900 need 3930"),
        ({"spot": "prefer", "deadline": "9h", "work_s": "1h", "tasks": 2}, "is for a job of one task"),
        ({"spot": "sometimes"}, "must be true, false or prefer"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", "\\(")):
        Job.model_validate({"name": "a", "command": ["x"], **fields})
