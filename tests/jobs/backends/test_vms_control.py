"""The state machine of a job on machines of its own: every state, every pair of states, and a crash in each call."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.diagnostics.errors import CloudRefused, CloudSilent
from jobs.backends.vm import labels, state_machine
from jobs.backends.vm.reconciler import advance
from jobs.backends.vm.record import Attempt, Record, Result, as_json, of_json
from jobs.backends.vm.state_machine import Done, MachineState, Make, NoCapacity, Remove, Wait, Write, decide

NOW = datetime(2026, 11, 22, tzinfo=UTC)
NAME = "train-0123456789ab"
T = TypeVar("T")
LIVE = ("waiting", "starting", "running")
STATES = ("absent", *LIVE, "lost", "failed", "leaving")


def made_record(**body: Any) -> Record:
    wanted = {"hosts": 1, "zones": ["a", "b", "c"], "retries": 0, "lost_retries": 2, "zone_wait_s": None, **body}
    first = Attempt(number=1, zone="a", name=NAME, planned=NOW.isoformat())
    return Record("tpu-vm", "tpus", NAME, "train", "k" * 64, "h", wanted, NOW.isoformat(), (first,))


def result(host: int = 0, code: int | None = 0, reason: str | None = "exited") -> Result:
    return Result(host, code, reason, NOW.isoformat(), NOW.isoformat())


class Crash(BaseException):
    """kill -9 of the client."""


class World:
    """A cloud and a bucket. Every call counts, and the one numbered `crash` (or its answer) kills the client."""

    def __init__(self, record: Record) -> None:
        self.record, self.generation = record, 1
        self.machines: dict[str, str] = {}
        self.told: dict[int, dict[int, Result]] = {}
        self.runs: list[str] = []
        self.refuse: list[Exception] = []
        self.calls, self.crash, self.after = 0, -1, False

    def _call(self, effect: Callable[[], T]) -> T:
        self.calls += 1
        if self.calls == self.crash and not self.after:
            raise Crash
        made = effect()
        if self.calls == self.crash:
            raise Crash
        return made

    def make(self, record: Record, attempt: Attempt) -> None:
        def effect() -> None:
            if self.refuse:
                raise self.refuse.pop(0)
            if attempt.name not in self.machines:
                self.machines[attempt.name] = "waiting"
                self.runs.append(attempt.name)

        self._call(effect)

    def look(self, record: Record, attempt: Attempt) -> MachineState:
        return self._call(lambda: MachineState(self.machines.get(attempt.name, "absent"), "NATIVE"))

    def remove(self, record: Record, attempt: Attempt) -> None:
        self._call(lambda: self.machines.pop(attempt.name, None))

    def read(self, name: str) -> tuple[Record, str]:
        return self._call(lambda: (self.record, str(self.generation)))

    def replace(self, record: Record, generation: str) -> str | None:
        def effect() -> str | None:
            if generation != str(self.generation):
                return None
            self.record, self.generation = of_json(as_json(record), "test"), self.generation + 1
            return str(self.generation)

        return self._call(effect)

    def check(self, record: Record) -> None:
        """Its target has everything."""

    def results(self, record: Record, attempt: Attempt) -> dict[int, Result]:
        return self._call(lambda: dict(self.told.get(attempt.number, {})))

    def advance(self, now: datetime = NOW) -> Record:
        return advance(self, self, NAME, lambda: now, lambda text: None)

    def until_killed(self, crash: int, after: bool) -> bool:
        """Whether the client was killed."""
        self.calls, self.crash, self.after = 0, crash, after
        try:
            self.advance()
        except Crash:
            return True
        finally:
            self.crash = -1
        return False


def test_a_job_runs_once_and_leaves_nothing() -> None:
    world = World(made_record())
    assert world.advance().last.state == "made"
    world.machines[NAME] = "running"
    assert world.advance().last.started == NOW.isoformat(timespec="milliseconds")
    world.told[1] = {0: result()}
    record = world.advance()
    assert (record.outcome, record.last.outcome, record.last.exit_codes) == ("succeeded", "succeeded", {"0": 0})
    assert world.machines == {} and world.runs == [NAME]


def test_what_is_taken_away_is_made_again_in_the_next_zone_and_not_for_ever() -> None:
    world = World(made_record(lost_retries=2))
    zones: list[str] = []
    for _ in range(3):
        zones.append(world.advance().last.zone)
        world.machines[world.record.last.name] = "lost"
    record = world.advance()
    assert zones == ["a", "b", "c"] and world.runs == [NAME, f"{NAME}-r2", f"{NAME}-r3"]
    assert (record.outcome, record.count("lost")) == ("failed", 3) and world.machines == {}


def test_its_own_failures_are_counted_apart_and_stay_in_their_zone() -> None:
    world = World(made_record(retries=1, lost_retries=0))
    world.advance()
    world.told[1] = {0: result(code=7)}
    assert world.advance().last.zone == "a" and len(world.record.attempts) == 2
    world.told[2] = {0: result(code=7)}
    record = world.advance()
    assert (record.outcome, record.reason) == ("failed", "exit code 7") and world.machines == {}


def test_one_failed_host_of_several_ends_the_attempt_and_names_itself() -> None:
    world = World(made_record(hosts=4))
    world.advance()
    world.machines[NAME] = "running"
    world.told[1] = {0: result(0), 1: result(1)}
    assert world.advance().ended is None
    world.told[1][2] = result(2, code=3)
    record = world.advance()
    assert (record.outcome, record.reason) == ("failed", "exit code 3 on host 2")


def test_a_host_that_was_stopped_for_another_is_not_the_one_to_name() -> None:
    world = World(made_record(hosts=3))
    world.advance()
    world.told[1] = {0: result(0, None, "stopped: host 2 ended: exited"), 2: result(2, code=9)}
    record = world.advance()
    assert (record.outcome, record.reason) == ("failed", "exit code 9 on host 2")


def test_a_command_that_ended_well_too_late_has_not_succeeded() -> None:
    world = World(made_record())
    world.advance()
    world.told[1] = {0: result(code=0, reason="timeout")}
    assert world.advance().reason == "timeout"


def test_a_host_that_was_told_of_a_preemption_is_lost_and_did_not_fail() -> None:
    world = World(made_record(retries=0))
    world.advance()
    world.told[1] = {0: result(code=143, reason="preempted")}
    assert [attempt.outcome for attempt in world.advance().attempts] == ["lost", ""]


@pytest.mark.parametrize(
    "code, said",
    [(143, "it stopped because its machine is taken away (exit code 143)"),
     (75, "its machine is not fit for it (exit code 75)")],
)  # fmt: skip
def test_an_exit_code_may_say_that_the_machine_is_at_fault(code: int, said: str) -> None:
    world = World(made_record(retries=0))
    world.advance()
    world.told[1] = {0: result(code=code)}
    first, second = world.advance().attempts
    assert (first.outcome, first.reason, second.outcome) == ("lost", said, "")
    assert first.zone != second.zone


def test_a_zone_that_has_none_is_left_at_once_and_each_is_asked_once() -> None:
    world = World(made_record())
    world.refuse = [NoCapacity("none here"), NoCapacity("none here")]
    assert world.advance().last.zone == "c"
    world = World(made_record())
    world.refuse = [NoCapacity("none here")] * 3
    record = world.advance()
    assert record.outcome == "failed" and record.reason == "none here (tried a, b, c)" and len(record.attempts) == 3


def test_a_refusal_is_not_tried_elsewhere() -> None:
    world = World(made_record())
    world.refuse = [CloudRefused("quota")]
    record = world.advance()
    assert (record.outcome, record.reason, len(record.attempts)) == ("failed", "quota", 1)


def test_a_queue_is_left_after_its_time() -> None:
    world = World(made_record(zone_wait_s=600))
    world.advance()
    assert world.advance(NOW + timedelta(seconds=600)).last.number == 1
    record = world.advance(NOW + timedelta(seconds=601))
    assert (record.last.zone, record.attempts[0].outcome) == ("b", "expired")
    assert list(world.machines) == [f"{NAME}-r2"]


def test_machines_that_never_start_or_never_tell_are_given_up() -> None:
    world = World(made_record(timeout_s=60, lost_retries=0))
    world.advance()
    world.machines[NAME] = "starting"
    late = NOW + timedelta(seconds=state_machine.START_S + 1)
    assert world.advance(late).last.outcome == "lost"
    world = World(made_record(timeout_s=60))
    world.advance()
    world.machines[NAME] = "running"
    world.advance()
    world.machines[NAME] = "starting"  # a repair
    assert world.advance(NOW + timedelta(seconds=60 + state_machine.SILENT_S)).ended is None
    assert world.advance(NOW + timedelta(seconds=61 + state_machine.SILENT_S)).outcome == "failed"


@pytest.mark.parametrize("state", [None, *LIVE])
def test_a_cancelled_job_leaves_nothing_in_any_state(state: str | None) -> None:
    world = World(made_record())
    if state:
        world.advance()
        world.machines[NAME] = state
    world.record = replace(world.record, cancelled="enough")
    record = world.advance()
    assert (record.outcome, record.reason) == ("cancelled", "enough") and world.machines == {}
    assert len(world.runs) == bool(state)


def test_a_job_that_succeeded_before_it_was_cancelled_has_succeeded() -> None:
    world = World(made_record())
    world.advance()
    world.told[1] = {0: result()}
    world.record = replace(world.record, cancelled="too late")
    assert world.advance().outcome == "succeeded"


@pytest.mark.parametrize("first, second", list(itertools.product(STATES, repeat=2)))
def test_every_pair_of_states_with_a_crash_in_every_call(first: str, second: str) -> None:
    """Another client goes on where one was killed: one run to its end, and nothing left."""
    killed = [_walked(first, second, crash, after) for crash in range(1, 30) for after in (False, True)]
    assert any(killed) and not killed[-1]  # a client makes fewer calls than that


def _walked(first: str, second: str, crash: int, after: bool) -> bool:
    world, killed = World(made_record(lost_retries=9, retries=9)), False
    world.advance()
    for state in (first, second):
        current = world.record.last.name
        if state == "absent":
            world.machines.pop(current, None)
        elif current in world.machines:  # what is gone does not come back
            world.machines[current] = state
        killed |= world.until_killed(crash, after)
        finish_leaving(world)
        world.advance()
    to_the_end(world)
    assert len(set(world.runs)) == len(world.runs)
    return killed


def finish_leaving(world: World) -> None:
    for name in [name for name, state in world.machines.items() if state == "leaving"]:
        del world.machines[name]


def to_the_end(world: World) -> None:
    """The last attempt succeeds, whichever it is."""
    for _ in range(20):
        record = world.advance()
        if record.ended:
            break
        finish_leaving(world)
        if world.machines.get(record.last.name) in LIVE:
            world.told.setdefault(record.last.number, {0: result()})
    assert world.record.ended and world.machines == {}
    numbers = [attempt.number for attempt in world.record.attempts]
    assert numbers == list(range(1, len(numbers) + 1))
    assert world.record.count("succeeded") <= 1
    assert all(attempt.state == "gone" for attempt in world.record.attempts)


@given(
    events=st.lists(st.tuples(st.sampled_from(STATES), st.integers(1, 25), st.booleans()), max_size=8),
    cancel=st.booleans(),
)
def test_any_history_ends_with_nothing_left(events: list[tuple[str, int, bool]], cancel: bool) -> None:
    world = World(made_record(lost_retries=3))
    for state, crash, after in events:
        current = world.record.last.name
        if current in world.machines:
            if state == "absent":
                del world.machines[current]
            else:
                world.machines[current] = state
        world.until_killed(crash, after)
    if cancel:
        world.record, world.generation = replace(world.record, cancelled="x"), world.generation + 1
    to_the_end(world)


def test_a_cloud_that_does_not_show_what_it_made_is_looked_at_again_later() -> None:
    world = World(made_record())
    world.make = lambda record, attempt: world.runs.append(attempt.name)  # type: ignore[method-assign]
    assert world.advance().last.state == "planned" and world.runs == [NAME]


def test_machines_made_by_a_client_that_slept_are_taken_back() -> None:
    """It decided to make them long ago; meanwhile another made them, saw them end, and removed them."""
    world = World(made_record(lost_retries=0))
    late = World(made_record())

    class Sleeper:
        read, replace, results, look, check = late.read, late.replace, late.results, late.look, late.check
        remove = staticmethod(world.remove)

        def make(self, record: Record, attempt: Attempt) -> None:
            world.advance()
            world.machines[NAME] = "lost"
            assert world.advance().ended
            world.make(record, attempt)  # what it had decided
            late.record = world.record

    sleeper = Sleeper()
    advance(sleeper, sleeper, NAME, lambda: NOW, lambda text: None)
    assert world.machines == {}


@pytest.mark.parametrize("state", STATES)
def test_each_state_of_a_decided_attempt_leads_to_its_removal(state: str) -> None:
    record = made_record().with_last(state="ended", outcome="failed", reason="exit code 1")
    step = decide(record, MachineState(state, "X"), {}, NOW)
    wanted = {"absent": Write, "leaving": Wait}.get(state, Remove)
    assert isinstance(step, wanted)


def test_the_table_of_a_planned_and_an_ended_job() -> None:
    record = made_record()
    assert decide(record, MachineState("absent", ""), {}, NOW) == Make()
    # What has told of a result was made before, whatever is to be seen of it now.
    assert isinstance(decide(record, MachineState("absent", ""), {0: result()}, NOW), Write)
    assert decide(replace(record, ended="now"), MachineState("running", ""), {}, NOW) == Done()


def test_a_newer_record_is_read_and_nonsense_is_not() -> None:
    record = made_record()
    document = as_json(record)
    assert of_json({**document, "newer": 1}, "x") == record
    with pytest.raises(CloudSilent, match="gs://b/x: is no record of a job"):
        of_json({"attempts": []}, "gs://b/x")


def test_names_keep_the_key_and_fit() -> None:
    long = labels.machine_name(f"{'My_Long.Name' * 9}-0123456789ab")
    assert len(long) <= labels.NAME_MAX and long.endswith("-0123456789ab") and long == long.lower()
    assert labels.machine_name("7b-0123456789ab") == "j-7b-0123456789ab"
    assert labels.attempt_name("a", 1) == "a" and labels.attempt_name("a", 3) == "a-r3"
