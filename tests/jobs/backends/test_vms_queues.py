"""TPUs that a stack declares: asked for and healed by any number of clients at once, gone when they are not wanted."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from accel.diagnostics.errors import CloudSilent, NotFound
from jobs.backends.vm import queues, state_machine
from jobs.backends.vm.queues import Queues
from tests.jobs.backends.test_vms_standing import BODY, BUCKET
from tests.jobs.backends.tpu_turns import killer
from tests.jobs.backends.tpu_world import Client, Crash, Json, World
from tests.support.soak import SOAK

DECLARED = "accel-queues/trainer.json"


class QueueWorld(World):
    """Nodes that run nothing; no two requests for nodes of one name at once."""

    def _boot(self, name: str) -> None:
        live = [each for each, request in self.requests.items() if request["state"]["state"] == "ACTIVE"]
        assert live == [name], live

    @property
    def states(self) -> list[str]:
        return [request["state"]["state"] for request in self.requests.values()]

    def declare(self, **changes: Any) -> None:
        self.put(DECLARED, json.dumps({**BODY, **changes}), None)

    def records(self) -> list[Json]:
        found = [data for name, (data, _) in self.objects.items() if name.endswith("/record.json")]
        return [json.loads(data) for data in found]


class QueueClient(Client):
    """With lists of objects by a glob, and the nodes of several slices."""

    def pages(self, api: str, path: str, member: str, **query: Any) -> Iterator[Json]:
        if "prefix" in query:
            return super().pages(api, path, member, **query)

        def effect() -> Iterator[Json]:
            if api == "tpu":
                return iter(self._slices(path.removeprefix("v2/").removesuffix("/nodes")))
            first, _, last = query["matchGlob"].partition("*")
            found = sorted(self.world.objects.items())
            return iter(
                {"name": name, "generation": str(generation), "timeCreated": "2026-11-22T00:00:00Z"}
                for name, (_, generation) in found
                if name.startswith(first) and name.endswith(last) and "/" not in name[len(first) :].removesuffix(last)
            )

        return self._call(effect)

    def _slices(self, place: str) -> list[Json]:
        nodes: list[Json] = []
        for request in self.world.requests.values():
            spec = request["tpu"]["nodeSpec"][0].get("multisliceParams")
            if spec and request["state"]["state"] == "ACTIVE":
                prefix = f"{place}/nodes/{spec['nodeIdPrefix']}"
                nodes += [{"name": f"{prefix}-{i}", "state": "READY"} for i in range(spec["nodeCount"])]
        return nodes

    def _got(self, name: str) -> Json:
        if name.startswith("b/"):
            found = name.partition("/o/")[2].replace("%2F", "/")
            if found not in self.world.objects:
                raise NotFound(f"{found} was not found")
            return {"name": found, "generation": str(self.world.objects[found][1])}
        return super()._got(name)

    def delete(self, api: str, path: str, **query: object) -> Json:
        if api == "storage":
            name = path.partition("/o/")[2].replace("%2F", "/")
            self._call(lambda: self.world.objects.pop(name, None))
            return {}
        return super().delete(api, path, **query)


def of(world: QueueWorld, gate: Callable[[bool], None] = lambda after: None) -> Queues:
    google: Any = QueueClient(world, gate)
    return Queues(google, BUCKET)


def look(world: QueueWorld, gate: Callable[[bool], None] = lambda after: None) -> list[str]:
    with suppress(CloudSilent):
        return of(world, gate).reconcile(lambda text: None)[1]
    return []


def move(world: QueueWorld, turns: int = 8, *, steps: int = 1) -> None:
    """The cloud goes on, and a client looks."""
    for _ in range(turns):
        for name in list(world.requests)[:steps]:
            world.go_on(name)
        look(world)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> QueueWorld:
    monkeypatch.setattr(state_machine, "AGAIN_S", 0)
    monkeypatch.setattr(queues, "POLL_S", 0)
    world = QueueWorld()
    world.declare()
    return world


def test_the_request_is_spot_of_two_slices_with_a_name_that_stays(world: QueueWorld) -> None:
    look(world)
    (request,) = world.requests.values()
    (spec,) = request["tpu"]["nodeSpec"]
    assert request["spot"] == {} and "guaranteed" not in request and "queueingPolicy" not in request
    assert spec["multisliceParams"] == {"nodeCount": 2, "nodeIdPrefix": "accel-prod-trainer"}
    labels, where = spec["node"]["labels"], json.loads(spec["node"]["metadata"]["accel-queue"])
    assert (labels["accel-maker"], labels["accel-queue"], labels["team"]) == ("queues", "trainer", "vision")
    assert where == {"bucket": BUCKET, "name": labels["accel-job"]} and "accel-agent" not in spec["node"]["metadata"]


def test_what_was_preempted_is_asked_for_again_any_number_of_times(world: QueueWorld) -> None:
    for _ in range(30):
        move(world)
        assert world.states == ["ACTIVE"]
        world.move(next(iter(world.requests)), "SUSPENDED")
    (record,) = world.records()
    numbers = [each["number"] for each in record["attempts"]]
    assert len(numbers) == state_machine.REMEMBERED and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert numbers[-1] == 30 and record["ended"] is None


def test_another_writing_comes_after_the_nodes_of_the_first_are_gone(world: QueueWorld) -> None:
    move(world)
    (first,) = world.requests
    world.declare(spot=False)
    look(world)
    assert list(world.requests) == [first] and world.states == ["DELETING"], "the nodes have the same names"
    move(world)
    (second,) = world.requests
    assert second != first and world.states == ["ACTIVE"] and "spot" not in world.requests[second]
    assert len(world.records()) == 1


def test_what_is_declared_no_more_goes(world: QueueWorld) -> None:
    move(world)
    del world.objects[DECLARED]
    move(world)
    assert world.requests == {} and world.objects == {}


def test_a_queue_that_is_retired_stays_so_while_its_declaration_is_there(world: QueueWorld) -> None:
    move(world)
    name = next(iter(world.requests))

    def cloud(after: bool) -> None:
        if after and name in world.requests and world.requests[name]["state"]["state"] == "DELETING":
            world.go_on(name)

    of(world, cloud).retire("trainer", lambda text: None, 30)
    assert world.requests == {}
    move(world)
    assert world.requests == {} and len(world.records()) == 1
    del world.objects[DECLARED]
    of(world).forget("trainer")
    assert world.objects == {}


def test_a_queue_is_retired_before_anybody_has_looked_at_it(world: QueueWorld) -> None:
    of(world).retire("trainer", lambda text: None, 30)
    move(world)
    assert world.requests == {}


@pytest.mark.parametrize("after", [False, True])
def test_a_client_that_dies_at_any_call_leaves_one_request(world: QueueWorld, after: bool) -> None:
    for crash in range(1, 30):
        fresh = QueueWorld()
        fresh.declare()
        for state in ("", "ACTIVE", "SUSPENDED", "FAILED"):
            if state and fresh.requests:
                fresh.move(next(iter(fresh.requests)), state)
            with suppress(Crash):
                look(fresh, killer(crash, after))
            assert len(fresh.requests) <= 1
        move(fresh)
        assert fresh.states == ["ACTIVE"], crash


def test_clients_that_look_while_another_one_sleeps(world: QueueWorld) -> None:
    """A function and a client at once, at every call of the one: there is one request at most at a time, and in the end
    exactly what is declared."""
    for seed in range(2000 if SOAK else 60):
        chance = random.Random(seed)
        fresh = QueueWorld()
        fresh.declare()
        move(fresh, chance.randint(0, 6))
        gone = chance.random() < 0.3

        def events(fresh: QueueWorld = fresh, chance: random.Random = chance, gone: bool = gone) -> None:
            for _ in range(chance.randint(1, 6)):
                for name in list(fresh.requests):
                    taken = chance.random() < 0.3 and fresh.requests[name]["state"]["state"] != "DELETING"
                    fresh.move(name, "SUSPENDED") if taken else fresh.go_on(name)
                if chance.random() < 0.2:
                    fresh.declare(spot=chance.random() < 0.5)
                look(fresh)
                assert len(fresh.requests) <= 2
            if gone:
                fresh.objects.pop(DECLARED, None)
                move(fresh)

        look(fresh, _sleeper(chance.randint(1, 12), events))
        move(fresh, 16, steps=9)
        if DECLARED not in fresh.objects:
            assert (fresh.requests, fresh.objects) == ({}, {}), seed
        else:
            assert fresh.states == ["ACTIVE"] and len(fresh.records()) == 1, seed


def _sleeper(at: int, events: Callable[[], None]) -> Callable[[bool], None]:
    count = 0

    def gate(after: bool) -> None:
        nonlocal count
        count += not after
        if count == at and not after:
            events()

    return gate


def test_a_refusal_is_written_down_and_the_other_queues_go_on(world: QueueWorld) -> None:
    world.put("accel-queues/broken.json", "{", None)
    assert [each.partition(":")[0] for each in look(world)] == ["queue broken"] and len(world.requests) == 1
