"""Stops and resumes in any order, each perhaps killed or refused at one of its calls: none is half made in the end."""

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import pytest

from accel.budget.acting import LEASE_S, look, resume
from accel.budget.levers import Lever, LeverError
from accel.budget.spending import Limit, Reading
from components.aws.budget_function import Environments, Jobs, Queues
from components.gcp.budget_function.cloud import Cloud, NotThere
from components.gcp.budget_function.levers import levers as google_levers
from components.gcp.budget_function.plan import Plan, PlannedCluster
from tests.components.aws.test_budget_function import DEMAND, QUEUE, SPOT, Batch
from tests.support.soak import SOAK
from tests.support.stopping import Killed, Memory

LIMIT = Limit("gpus", 1.0, "actual", 0)
SEQUENCES, MOST_CALLS = 2000 if SOAK else 150, 40
CLUSTER = "projects/p/locations/us-central1-a/clusters/ml"
POOL, BUSY, TPU = f"{CLUSTER}/nodePools/gpus", f"{CLUSTER}/nodePools/busy", "projects/p/locations/z/queuedResources/q"


@dataclass
class Fate:
    """At which call the process ends or a cloud refuses, and whether what it asked for is done all the same."""

    at: int | None = None
    done: bool = False
    by: type[BaseException] = Killed
    calls: int = 0

    def over(self, target: Any) -> Any:
        """The object, whose calls are counted."""
        return Watched(target, self)


@dataclass
class Watched:
    """An object, any of whose methods may be the last thing that the process does."""

    target: Any
    fate: Fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.target, name)
        return partial(self._called, found) if callable(found) and name != "get_paginator" else found

    def _called(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self.fate.calls += 1
        last = self.fate.calls == self.fate.at
        if last and not self.fate.done:
            raise self.fate.by
        answer = call(*given, **named)
        if last:
            raise self.fate.by
        return answer


class Aws:
    """Queues, environments and jobs."""

    def __init__(self, chance: random.Random) -> None:
        states = ("ENABLED", "ENABLED", "DISABLED")
        sizes = {arn: (chance.choice(states), chance.choice((0, 8)), 96) for arn in (SPOT, DEMAND)}
        self.batch = Batch({QUEUE: chance.choice(states), f"{QUEUE}-2": chance.choice(states)}, sizes)

    def levers(self, fate: Fate) -> list[Lever]:
        batch = fate.over(self.batch)
        return [Queues(batch, list(self.batch.queues)), Environments(batch, [SPOT, DEMAND]), Jobs(batch, [QUEUE], None)]

    def left(self) -> dict[str, Any]:
        """What a resume has to bring back."""
        return deepcopy({**self.batch.queues, **self.batch.sizes})

    def runs(self) -> list[str]:
        """What a stop ends or switches off, and what is on all the same."""
        on = [arn for arn, state in self.batch.queues.items() if state == "ENABLED"]
        on += [arn for arn, (state, least, _) in self.batch.sizes.items() if (state, least) != ("DISABLED", 0)]
        return on + [job for job, (state, _) in self.batch.jobs.items() if state == "RUNNING"]

    def passes(self) -> None:
        """Time: what may begin has begun."""
        if self.batch.queues[QUEUE] == "ENABLED" and any(one[0] == "ENABLED" for one in self.batch.sizes.values()):
            self.batch.jobs[f"job-{len(self.batch.jobs)}"] = ("RUNNING", QUEUE)


class Apis(Cloud):
    """The APIs of GKE, Compute Engine, TPUs and Kueue as far as the levers ask them."""

    def __init__(self, pools: dict[str, Any], nodes: int, policies: dict[str, str], tpus: dict[str, Any]) -> None:
        super().__init__(lambda: "token")
        self.pools, self.nodes, self.policies, self.tpus = pools, nodes, policies, tpus

    def call(self, method: str, api: str, path: str, body: Any = None, **query: object) -> dict[str, Any]:
        at, _, verb = path.partition("/")[2].partition(":")
        if api == "compute":
            return {"targetSize": self.nodes}
        if verb == "setAutoscaling":
            self.pools[at] = body["autoscaling"]
            return {}
        if api == "container":
            groups = ["https://c/compute/v1/group"] if at == BUSY else []
            return {"autoscaling": self.pools[at], "instanceGroupUrls": groups}
        assert api == "tpu", path
        if method == "POST":
            self.tpus[f"{at}/{query['queuedResourceId']}"] = body
        elif at not in self.tpus:
            raise NotThere(path, 404, "not found")
        elif method == "DELETE":
            del self.tpus[at]
        else:
            return {**self.tpus[at], "state": {"state": "WAITING_FOR_RESOURCES"}}
        return {}

    def kubernetes(
        self, cluster: Mapping[str, str], method: str, path: str, body: Any = None, kind: str = ""
    ) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        if method == "PATCH":
            self.policies[name] = body["spec"]["stopPolicy"]
        return {"spec": {"stopPolicy": self.policies[name]}}


class Google:
    """Pools, one of them with nodes, Kueue's queues and a TPU that waits."""

    def __init__(self, chance: random.Random) -> None:
        size = {"enabled": True, "totalMaxNodeCount": chance.randint(1, 9), "locationPolicy": "ANY"}
        pools = {POOL: size, BUSY: {"enabled": True, "minNodeCount": chance.randint(0, 1), "maxNodeCount": 3}}
        policies = {name: chance.choice(("None", "None", "Hold")) for name in ("a", "b")}
        self.apis = Apis(pools, chance.randint(0, 2), policies, {TPU: {"spot": {}, "tpu": {"nodeSpec": []}}})
        cluster = PlannedCluster(CLUSTER, "192.0.2.1", "", {"gpus": "gpus", "busy": "busy"}, ["a", "b"])
        self.plan = Plan("p", {}, [], clusters=[cluster], tpu_queues=[TPU])

    def levers(self, fate: Fate) -> list[Lever]:
        return google_levers(self.plan, cast("Cloud", fate.over(self.apis)))

    def left(self) -> dict[str, Any]:
        """What a resume has to bring back."""
        return deepcopy({**self.apis.pools, **self.apis.policies, **self.apis.tpus})

    def runs(self) -> list[str]:
        """What is on all the same after a stop."""
        on = [name for name, size in self.apis.pools.items() if size["enabled"]]
        return (
            on + [name for name, policy in self.apis.policies.items() if policy != "HoldAndDrain"] + [*self.apis.tpus]
        )

    def passes(self) -> None:
        """Time: pools shrink where they may."""
        if self.apis.pools[BUSY].get("minNodeCount") == 0:
            self.apis.nodes = 0


@dataclass
class Life:
    """One stack, its stop, and months that go by."""

    world: Aws | Google
    store: Memory = field(default_factory=Memory)
    now: float = 0.0
    month: int = 0
    told: list[str] = field(default_factory=list[str])

    def stop(self, fate: Fate) -> None:
        self.month += 1
        self._look(fate, [Reading("gpus", f"month {self.month}", 1000, "USD", 1200)])

    def tick(self, fate: Fate) -> None:
        self._look(fate, [])

    def _look(self, fate: Fate, readings: list[Reading]) -> None:
        look([LIMIT], readings, self.world.levers(fate), fate.over(self.store), self.now)

    def resume(self, fate: Fate) -> None:
        resume(self.world.levers(fate), fate.over(self.store), self.now)

    def step(self, verb: str, fate: Fate) -> None:
        with suppress(Killed, LeverError):
            getattr(self, verb)(fate)
        self.told.append(f"{verb} {fate}")
        self.now += LEASE_S
        self.world.passes()


@pytest.mark.parametrize("kind", [Aws, Google])
def test_after_the_last_stop_all_is_stopped_and_after_the_last_resume_it_is_as_before(kind: type[Aws | Google]) -> None:
    wrong: list[str] = []
    for seed in range(SEQUENCES):
        chance = random.Random(f"budget {seed}")
        life = Life(kind(chance))
        before = life.world.left()
        for _ in range(chance.randint(1, 8)):
            at = chance.randint(1, MOST_CALLS) if chance.random() < 0.7 else None
            fate = Fate(at, chance.random() < 0.5, chance.choice((Killed, LeverError)))
            life.step(chance.choice(("stop", "tick", "resume")), fate)
        # A pool with nodes is switched off once they have gone.
        for verb in ("stop", "tick"):
            life.step(verb, Fate())
        if on := life.world.runs():
            wrong.append(f"seed {seed}: not stopped: {on} after {'; '.join(life.told)}")
        life.step("resume", Fate())
        if (after := life.world.left()) != before or life.store.load()[0].stopped:
            wrong.append(f"seed {seed}: {after} instead of {before} after {'; '.join(life.told)}")
    assert not wrong, f"{len(wrong)} of {SEQUENCES}: {wrong[0]}"
