"""Reconcilers of one declared queue at the same time: a function, clients and hooks, in any order of their calls, with
a cloud that moves between them, and one of them killed."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accel.clouds.google.rest import Conflict
from jobs.backends.vm import queues, state_machine
from tests.jobs.backends.test_vms_queues import DECLARED, QueueWorld, look, move
from tests.jobs.backends.tpu_turns import Turns, cloud
from tests.jobs.backends.tpu_world import Json

EVENTS = st.sampled_from(["", "go on", "go on", "go on", "go on", "take away", "take away", "declare", "die"])
BURSTS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), EVENTS), min_size=8, max_size=50)
LATE = [
    (0, 6, ""),
    (1, 9, ""),
    (1, 9, "take away"),
    (1, 9, "go on"),
    (1, 9, "go on"),
    (1, 9, ""),
    (0, 1, ""),
    (0, 1, "die"),
]
"""One asks for an attempt that was over long ago, and is killed before it takes that back."""

REPLACED = [
    (0, 3, ""),
    (1, 2, ""),
    (0, 1, ""),
    (0, 2, "declare"),
    (0, 9, ""),
    (1, 2, "take away"),
]
"""One asks for TPUs that are then declared anew, while another is about to claim the first declaration."""


UNSEEN = [*[(0, 1, "")] * 3, (1, 1, ""), (1, 8, ""), (0, 1, "take away"), (0, 3, ""), (0, 9, "go on")]
"""One asks for TPUs that are taken away, and whose attempt another ends, before the first has seen them."""


class Clock:
    """The time that the reconciler sees. The machine's own would let one look ask as often as it is slow."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = datetime(2026, 11, 1, tzinfo=UTC)
        monkeypatch.setattr(queues, "_now", lambda: self.now)

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def settle(self, world: QueueWorld) -> None:
        """Time enough for every wait, with looks between."""
        for _ in range(40):
            self.pass_by(state_machine.AGAIN_S)
            move(world, 1, steps=9)


class Nodes(QueueWorld):
    """A request is refused while another has nodes of its names, as Google does."""

    def make(self, path: str, body: Json, name: str, asked: str) -> Json:
        states = {request["state"]["state"] for request in self.requests.values()}
        if asked not in self.asked and states - {"SUSPENDED", "FAILED"} and f"{path[3:]}/{name}" not in self.requests:
            raise Conflict(f"nodes of {name}: already exist")
        return super().make(path, body, name, asked)


def test_what_a_killed_client_asked_for_late_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has decided on the first attempt, and wakes when that is over and the next one waits for its turn: its request
    has the names of the nodes."""
    world, clock = Nodes(), Clock(monkeypatch)
    world.declare()
    look(world)
    name, late = next(iter(world.requests.items()))
    world.move(name, "FAILED")
    look(world)
    world.move(name, "absent")
    look(world)
    assert [each["state"] for each in world.records()[0]["attempts"]] == ["gone", "planned"]
    world.requests[name] = {**late, "state": {"state": "ACTIVE"}}
    clock.settle(world)
    assert world.states == ["ACTIVE"] and name not in world.requests


@given(bursts=BURSTS)
@example(bursts=LATE)
@example(bursts=[*[(0, 1, "")] * 3, (1, 1, ""), *[(0, 1, "")] * 2, (1, 1, "declare")])
@example(bursts=REPLACED)
@example(bursts=UNSEEN)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_there_is_one_set_of_nodes_at_a_time_and_in_the_end(
    bursts: list[tuple[int, int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, turns, clock = Nodes(), Turns(3), Clock(monkeypatch)
    world.declare()
    failures: list[str] = []

    def client(gate: Callable[[bool], None]) -> None:
        for _ in range(12):
            failures.extend(look(world, gate))

    def happens(event: str, choice: int) -> None:
        clock.pass_by(state_machine.AGAIN_S / 3)
        if event == "declare":
            world.declare(spot=choice == 0)
        cloud(world, event)

    turns.play(client, bursts, happens)
    clock.settle(world)
    assert not failures
    # A client that was killed may have asked late, for what was taken away before it started: `stacks leaks` has it.
    late = {"SUSPENDED", "FAILED"} if any(event == "die" for *_, event in bursts) else set[str]()
    assert DECLARED in world.objects and len(world.records()) == 1
    assert world.states.count("ACTIVE") == 1 and set(world.states) <= {"ACTIVE"} | late
