"""A job on queued resources in Google's own states, each and every pair: with a client that is killed at each of its
calls, and with two that do the same at once."""

import itertools
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accel.diagnostics.errors import CloudSilent
from jobs.backends.vm.reconciler import advance
from jobs.backends.vm.record import Record
from jobs.backends.vm.records import Records
from jobs.backends.vm.tpu.queued_resources import QueuedResources
from tests.jobs.backends.tpu_target import make_request, make_target
from tests.jobs.backends.tpu_turns import Turns, cloud, killer
from tests.jobs.backends.tpu_world import STATES, Client, Crash, World
from tests.jobs.backends.vm_records import make_record
from tests.support.soak import SOAK

NOW = datetime(2026, 11, 22, tzinfo=UTC)
RECORD = make_record(make_request(accelerator={"type": "v5litepod-8"}, spot=True, retries=9, lost_retries=9))
TARGETS = {"tpus": make_target().model_dump(mode="json")}
CALLS = 24
"""More than a client makes in one look."""
CRASHES = list(itertools.product(range(1, CALLS), (False, True)))


def begun() -> World:
    """A job that was claimed, and nothing more."""
    world = World()
    Records(google(Client(world)), "acme-jobs").claim(RECORD)
    return world


def google(client: Client) -> Any:
    return client


def look(world: World, gate: Callable[[bool], None] = lambda after: None) -> Record | None:
    """What a client does that looks once; None where the cloud shows nothing yet, and it is told to try again."""
    found = google(Client(world, gate))
    try:
        kept = Records(found, "acme-jobs", known=TARGETS)
        return advance(QueuedResources(found), kept, RECORD.name, lambda: NOW, lambda text: None)
    except CloudSilent:
        return None


def recorded(world: World) -> Record:
    return Records(google(Client(world)), "acme-jobs").read(RECORD.name)[0]


def to_the_end(world: World, *, late: bool = False) -> None:
    """The cloud goes on, and a client looks now and then: it ends with one run at most, and nothing left.

    `late`: a client was killed that may have asked for machines of an attempt that was over by then. A request that was
    taken away before they started has none, and is one that `stacks leaks` deletes.
    """
    for _ in range(80):
        if (record := look(world)) and record.ended and not world.requests:
            break
        for name in list(world.requests):
            world.go_on(name)
            if name in world.requests and world.requests[name]["state"]["state"] in ("SUSPENDED", "FAILED"):
                world.forgets |= bool(recorded(world).ended)
    record = recorded(world)
    states = {request["state"]["state"] for request in world.requests.values()}
    assert record.ended and world.running == {} and states <= ({"SUSPENDED", "FAILED"} if late else set())
    assert (record.outcome == "succeeded") == (len(world.ran) == 1) == (record.count("succeeded") == 1)
    assert len(world.ran) <= 1
    assert [attempt.number for attempt in record.attempts] == list(range(1, len(record.attempts) + 1))
    assert all(attempt.state == "gone" for attempt in record.attempts)


def killed(world: World, crash: int, after: bool) -> bool:
    try:
        look(world, killer(crash, after))
    except Crash:
        return True
    return False


@pytest.mark.parametrize("first, second", list(itertools.product(STATES, repeat=2)))
def test_every_pair_of_states_with_a_client_that_is_killed(first: str, second: str) -> None:
    sample = random.Random(first + second).sample(CRASHES[:24], 2)
    for crash, after in CRASHES if SOAK else sample:
        world = begun()
        killed(world, crash, after)
        look(world)
        for state in (first, second):
            name = next(iter(world.requests), None)
            if name:  # what is gone does not come back
                world.move(name, state)
            killed(world, crash, after)
            for each in [each for each in world.requests if world.requests[each]["state"]["state"] == "DELETING"]:
                world.go_on(each)
            look(world)
        to_the_end(world)


def test_a_client_makes_fewer_calls_than_it_is_killed_at() -> None:
    for state in STATES:
        world = begun()
        assert killed(world, 4, False)
        look(world)
        world.move(next(iter(world.requests)), state)
        assert killed(world, 1, True) and not killed(world, CALLS, False), state


EVENTS = st.sampled_from(["", "go on", "go on", "go on", "go on", "take away", "take away", "die"])
BURSTS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), EVENTS), min_size=8, max_size=50)
"""Which client makes how many calls while the others sleep, and what happens then."""


@given(bursts=BURSTS, forgets=st.booleans())
@example(  # asked for late, by a client that dies, and taken away before it starts
    bursts=[
        *[(0, 3, ""), (1, 1, ""), (1, 1, ""), (1, 7, "take away"), (1, 9, "go on"), (1, 3, ""), (0, 1, "take away")],
        (0, 1, "die"),
    ],
    forgets=False,
)
def test_clients_that_look_at_the_same_time(bursts: list[tuple[int, int, str]], forgets: bool) -> None:
    """In any order of their calls, with a cloud that moves between them: no attempt runs twice at once (the world says
    so), and nothing is left."""
    world, turns = begun(), Turns(3)
    world.forgets = forgets

    def client(gate: Callable[[bool], None]) -> None:
        for _ in range(20):
            look(world, gate)

    turns.play(client, bursts, lambda event, choice: cloud(world, event))
    to_the_end(world, late=any(event == "die" for *_, event in bursts))


@pytest.mark.parametrize("begins", ["planned", "WAITING_FOR_RESOURCES", "ACTIVE", "SUSPENDED"])
@pytest.mark.parametrize("dies", [False, True])
def test_a_client_that_sleeps_while_another_goes_on(begins: str, dies: bool) -> None:
    """It has decided on what was, and wakes in the midst of another life of the job: perhaps to be killed by its next
    call, so that it can take nothing back."""
    for seed in range(3000 if SOAK else 10):
        chance = random.Random(f"{begins} {dies} {seed}")
        world = begun()
        world.forgets = chance.random() < 0.8
        if begins != "planned":
            look(world)
            world.move(next(iter(world.requests)), begins)
        with suppress(Crash):
            look(world, sleeper(world, chance, dies))
        to_the_end(world)


def sleeper(world: World, chance: random.Random, dies: bool) -> Callable[[bool], None]:
    """Sleeps before one of its calls while the cloud moves and another client looks; may be killed after it."""
    at, count = chance.randint(1, 8), 0
    rounds, lost = chance.randint(2, 14), chance.random() / 2

    def gate(after: bool) -> None:
        nonlocal count
        count += not after
        if count != at:
            return
        if after and dies:
            raise Crash
        for _ in range(0 if after else rounds):
            look(world)
            for name in list(world.requests):
                gone = chance.random() < lost and world.requests[name]["state"]["state"] != "DELETING"
                world.move(name, "SUSPENDED") if gone else world.go_on(name)

    return gate


def test_a_zone_that_has_none_in_time_is_left() -> None:
    world = begun()
    look(world)
    world.move(next(iter(world.requests)), "FAILED")
    record = look(world)
    assert record is not None and record.attempts[0].outcome == "no-capacity"
