"""Seeded schedules of Spot machines (when there is capacity, and when a held machine is taken away), and the outcome of
one job under each policy. `poisson`: reclaims and stockouts come independently of each other. `bursty`: they come
together; for hours nothing happens, then machines go again and again and there is none to be had. Time is in seconds
from the submission."""

import random
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from jobs.model.deadline import decide, look_s, shortest_deadline_s

Kind = Literal["poisson", "bursty"]
KINDS: tuple[Kind, ...] = ("poisson", "bursty")
NEVER_ENDS = 20
"""Multiple of its work after which a run is given up."""
HOUR = 3600.0


@dataclass(frozen=True)
class Schedule:
    """Times of a Spot market. `reclaims`: when whatever machine is held is preempted. `stockouts`: from when to when
    none can be had; a machine that is held stays."""

    reclaims: tuple[float, ...]
    stockouts: tuple[tuple[float, float], ...]

    def next_reclaim(self, now: float) -> float:
        """Return infinity if there is none after now."""
        at = bisect_right(self.reclaims, now)
        return self.reclaims[at] if at < len(self.reclaims) else float("inf")

    def available_at(self, now: float) -> float:
        for start, end in self.stockouts:
            if start <= now < end:
                now = end
        return now


@dataclass(frozen=True)
class Task:
    """A job. `stop_s` and `start_s` are the longest times of a stop, and of a start with its restore; each takes a
    random part of them. `changeover_s` is the one in its file."""

    work_s: float
    deadline_s: float
    checkpoint_s: float
    stop_s: float
    start_s: float
    changeover_s: float


@dataclass
class Outcome:
    """Outcome of a run; `ended_s` is infinite if it was given up."""

    ended_s: float = float("inf")
    spot_s: float = 0.0
    on_demand_s: float = 0.0
    """Seconds for which a machine was paid for."""
    reclaims: int = 0
    moved: bool = False
    redone_s: float = 0.0

    def usd(self, spot_hour: float, on_demand_hour: float) -> float:
        return (self.spot_s * spot_hour + self.on_demand_s * on_demand_hour) / HOUR


Policy = Callable[[float, float, Task], bool] | None
"""Whether to move to on demand now, by the time and the seconds of saved work. None never does."""


def prefer(now: float, saved_s: float, task: Task) -> bool:
    return decide(now, task.deadline_s, task.work_s - saved_s, task.changeover_s).move


ALWAYS_SPOT: Policy = None


def on_demand(now: float, saved_s: float, task: Task) -> bool:
    return True


def schedule(kind: Kind, seed: int, length_s: float) -> Schedule:
    """Return a schedule that is the same for the same seed, on any machine."""
    chance = random.Random(f"{kind} {seed}")
    mean_life_s = chance.uniform(0.5, 24) * HOUR
    mean_gap_s, mean_stockout_s = chance.uniform(4, 48) * HOUR, chance.uniform(0.1, 4) * HOUR
    reclaims: list[float] = []
    stockouts: list[tuple[float, float]] = []
    if kind == "poisson":
        now = chance.expovariate(1 / mean_life_s)
        while now < length_s:
            reclaims.append(now)
            now += chance.expovariate(1 / mean_life_s)
        now = chance.expovariate(1 / mean_gap_s)
        while now < length_s:
            end = now + chance.expovariate(1 / mean_stockout_s)
            stockouts.append((now, end))
            now = end + chance.expovariate(1 / mean_gap_s)
        return Schedule(tuple(reclaims), tuple(stockouts))
    now = chance.expovariate(1 / mean_gap_s)
    while now < length_s:
        for _ in range(chance.randint(2, 8)):
            reclaims.append(now)
            end = now + chance.expovariate(1 / mean_stockout_s)
            stockouts.append((now, end))
            now = end + chance.uniform(60, 1800)
        now += chance.expovariate(1 / mean_gap_s)
    return Schedule(tuple(reclaims), tuple(stockouts))


def task(seed: int) -> Task:
    """Return a job that may begin on Spot, with more or less slack."""
    chance = random.Random(f"task {seed}")
    work_s = chance.uniform(1, 24) * HOUR
    stop_s, start_s = chance.uniform(0, 120), chance.uniform(60, 900)
    changeover_s = stop_s + start_s + 1
    needed = shortest_deadline_s(work_s, changeover_s)
    deadline_s = needed + chance.choice((0.0, 60.0, 0.1 * work_s, 0.5 * work_s, 2 * work_s))
    return Task(work_s, deadline_s, chance.uniform(60, 3600), stop_s, start_s, changeover_s)


def run(task: Task, schedule: Schedule, policy: Policy, seed: int) -> Outcome:
    """Use the seed for how long its starts and stops take, and for when it is looked at."""
    job = _Run(task, schedule, policy, random.Random(f"run {seed}"))
    job.to_the_end()
    return job.outcome


class _Run:
    def __init__(self, task: Task, schedule: Schedule, policy: Policy, chance: random.Random) -> None:
        self.task, self.schedule, self.policy, self.chance = task, schedule, policy, chance
        self.outcome = Outcome()
        self.now = self.saved_s = 0.0
        self.every_s = look_s(task.changeover_s)
        self.look = 0.0

    def to_the_end(self) -> None:
        while self.now < NEVER_ENDS * self.task.work_s:
            free = self.schedule.available_at(self.now)
            if self._watched(free, lambda now: self.saved_s) or self._attempt():
                break
        if self.outcome.moved:
            self.now += self.chance.uniform(0, self.task.stop_s) if self.outcome.spot_s else 0.0
            needs_s = self.chance.uniform(0, self.task.start_s) + self.task.work_s - self.saved_s
            self.outcome.on_demand_s = needs_s
            self.outcome.ended_s = self.now + needs_s

    def _watched(self, until: float, saved: Callable[[float], float]) -> bool:
        """Let time pass. If the job is moved before, stop at the time of that look and return True."""
        at, task, policy = max(self.look, self.now), self.task, self.policy
        while policy and at <= until:
            if policy(at, saved(at), task):
                self.now, self.outcome.moved = at, True
                return True
            at += (0.2 + 0.8 * self.chance.random()) * self.every_s
        self.now, self.look = until, at
        return False

    def _attempt(self) -> bool:
        """Run one machine on Spot, from its start. Return True if the job has ended or moves."""
        begun, before = self.now, self.saved_s
        works = begun + self.chance.uniform(0, self.task.start_s)
        ends = works + self.task.work_s - before
        lost = self.schedule.next_reclaim(begun)

        def saved(now: float) -> float:
            return before + max(now - works, 0.0) // self.task.checkpoint_s * self.task.checkpoint_s

        moved = self._watched(min(ends, lost), saved)
        self.outcome.spot_s += self.now - begun
        if not moved and ends <= lost:
            self.outcome.ended_s = ends
            return True
        done_s = before + max(self.now - works, 0.0)
        self.saved_s = saved(self.now)
        self.outcome.redone_s += done_s - self.saved_s
        self.outcome.reclaims += not moved
        return moved
