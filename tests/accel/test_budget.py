"""The core of stopping and resuming: what is due, in which order, and that no step is lost or made twice."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.budget.acting import LEASE_S, Busy, look, resume
from accel.budget.levers import STAGES, SUBMISSIONS, Change, LeverError, drill
from accel.budget.spending import Limit, Reading, crossing
from accel.budget.state import MOST_FINAL, State, of_json
from tests.support.stopping import Killed, Memory

LIMIT = Limit("gpus", 1.0, "actual", None)
OVER = Reading("gpus", "2026-11-01", 1000, "USD", 1200)


@dataclass
class Switches:
    """Things that are on or off, and calls that fail or end the process."""

    stage: str
    kind: str
    on: dict[str, bool]
    failing: set[str] = field(default_factory=set[str])
    killed_at: int | None = None
    pulled: list[str] = field(default_factory=list[str])

    def plan(self) -> list[Change]:
        return [Change(self.stage, self.kind, name, True, False, f"{name} off") for name, on in self.on.items() if on]

    def pull(self, change: Change) -> None:
        if self.killed_at == len(self.pulled):
            raise Killed
        if change.name in self.failing:
            raise LeverError(f"{change.name}: refused")
        self.on[change.name] = change.after
        self.pulled.append(change.name)

    def restore(self, change: Change) -> str | None:
        if change.name in self.failing:
            raise LeverError(f"{change.name}: refused")
        if change.name not in self.on:
            return f"{change.name} is gone"
        self.on[change.name] = change.before
        return None


def two() -> list[Any]:
    return [Switches("maximums", "pool", {"p": True}), Switches("queues", "queue", {"a": True, "b": True, "c": False})]


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("queue gpu: ENABLED to DISABLED", "queue gpu: DISABLED to ENABLED"),
        (
            "environment spot: ENABLED, 8 to 256 vCPUs to DISABLED, 0 to 256 vCPUs",
            "environment spot: DISABLED, 0 to 256 vCPUs to ENABLED, 8 to 256 vCPUs",
        ),
        ("node pool l4: autoscaling to 4 nodes, to 0 nodes and off", "node pool l4: as it was before"),
        ("cluster queue q of c: stop policy Hold", "cluster queue q of c: as it was before"),
    ],
)
def test_a_change_that_is_taken_back_is_told_the_other_way_round(text: str, back: str) -> None:
    assert Change("queues", "k", "n", 1, 2, text).back == back


@pytest.mark.parametrize(
    ("basis", "at", "actual", "forecast", "crossed"),
    [
        ("actual", 1.0, 999.99, 5000, False),
        ("actual", 1.0, 1000, None, True),
        ("actual", 1.2, 1100, None, False),
        ("forecast", 1.0, 10, 1000, True),
        ("forecast", 1.0, 5000, None, False),
    ],
)
def test_what_is_over_its_line(basis: str, at: float, actual: float, forecast: float | None, crossed: bool) -> None:
    reading = Reading("gpus", "2026-11-01", 1000, "USD", actual, forecast)
    assert (crossing(Limit("gpus", at, basis, None), reading) is not None) is crossed


def test_the_drill_is_what_happens_in_order() -> None:
    levers, store = two(), Memory()
    texts = [change.text for change in drill(levers, running=False)]
    done = look([LIMIT], [OVER], levers, store, 0)
    assert list(done.done) == texts == [SUBMISSIONS.text, "a off", "b off", "p off"]
    assert store.load()[0].stopped and "1,200.00 USD" in str(done.state.stopped)
    assert look([LIMIT], [OVER], levers, store, 10).done == (), "the same message again does nothing"


def test_resume_restores_what_was_and_is_not_stopped_again() -> None:
    levers, store = two(), Memory()
    look([LIMIT], [OVER], levers, store, 0)
    resume(levers, store, 10)
    assert [lever.on for lever in levers] == [{"p": True}, {"a": True, "b": True, "c": False}]
    assert look([LIMIT], [OVER], levers, store, 20).state.stopped is None
    for later in (replace(OVER, period="2026-12-01"), replace(OVER, amount=1100, actual=1200)):
        again = Memory(store.text, store.version)
        assert look([LIMIT], [later], two(), again, 30).state.stopped, "another month, or a higher line"


def test_failures_are_tried_again_and_nothing_else() -> None:
    levers, store = two(), Memory()
    levers[1].failing = {"a"}
    done = look([LIMIT], [OVER], levers, store, 0)
    assert done.failures == done.news == ("a: refused",)
    assert levers[0].on == {"p": False}, "the others are pulled all the same"
    again = look([], [], levers, store, 5)
    assert (again.done, again.failures, again.news) == ((), ("a: refused",), ()), "said once"
    levers[1].failing = set()
    levers[0].on["p"] = True  # by hand: what is through stays as somebody wants it
    assert not look([], [], levers, store, 10).failures and not levers[1].on["a"]
    assert levers[0].on == {"p": True}
    levers[1].failing = {"b"}
    assert resume(levers, store, 20).failures == ("b: refused",)
    assert store.load()[0].stopped, "it stays stopped"
    levers[1].failing = set()
    assert not resume(levers, store, 30).failures and store.load()[0].stopped is None
    assert levers[1].on == {"a": True, "b": True, "c": False}


def test_running_work_waits_for_its_grace() -> None:
    jobs = Switches("running", "job", {"j": True})
    store = Memory()
    limit = replace(LIMIT, running_after_s=600)
    look([limit], [OVER], [jobs], store, 0)
    assert look([], [], [jobs], store, 599).done == ()
    assert look([], [], [jobs], store, 600).done == ("j off",)


def test_one_at_a_time() -> None:
    levers, store = two(), Memory()
    levers[1].killed_at = 1
    with pytest.raises(Killed):
        look([LIMIT], [OVER], levers, store, 0)
    levers[1].killed_at = None
    for call in (lambda: look([], [], levers, store, 5), lambda: resume(levers, store, 5)):
        with pytest.raises(Busy):
            call()
    look([], [], levers, store, LEASE_S)
    assert not any(any(lever.on.values()) for lever in levers)


@settings(max_examples=200, deadline=None)
@given(
    on=st.lists(st.booleans(), min_size=1, max_size=4),
    kill_save=st.integers(0, 8),
    kill_pull=st.integers(0, 8),
    kills_resume=st.booleans(),
)
def test_killed_anywhere_it_ends_as_it_began(
    on: list[bool], kill_save: int, kill_pull: int, kills_resume: bool
) -> None:
    before = {f"q{number}": each for number, each in enumerate(on)}
    lever, store, now = Switches("queues", "queue", dict(before), killed_at=kill_pull), Memory(killed_at=kill_save), 0.0
    for _ in range(3):
        try:
            look([LIMIT], [OVER], [lever], store, now)
        except Killed:
            lever.killed_at = store.killed_at = None
        now += LEASE_S
    assert not any(lever.on.values())
    store.killed_at = store.version + kill_save % 2 if kills_resume else None
    for _ in range(2):
        try:
            resume([lever], store, now)
        except Killed:
            store.killed_at = None
        now += LEASE_S
    assert lever.on == before and store.load()[0].stopped is None


def test_the_state_is_read_whatever_version_wrote_it() -> None:
    levers, store = two(), Memory()
    look([LIMIT], [OVER], levers, store, 0)
    newer = store.text[:-1] + ', "added": 1}'
    assert of_json(newer) == of_json(store.text)


def test_a_document_has_an_end() -> None:
    jobs = [Change("running", "job", str(number), None, "ended", "x" * 80) for number in range(5000)]
    assert len(State().recorded(jobs)) == MOST_FINAL


def test_stages_are_in_the_order_of_what_they_cost() -> None:
    assert list(STAGES) == ["submissions", "queues", "maximums", "kueue", "waiting", "running"]
