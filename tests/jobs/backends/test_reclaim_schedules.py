"""A thousand seeded schedules of reclaims and of failures on each back end: by the request alone, a job is tried again
as often as its file says and no oftener, and what is then read of it counts every attempt."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import pytest

from benchmarks.reclaim_schedules import KINDS, NEVER_ENDS, Schedule, Task, schedule, task
from jobs.backends.base import Phase
from tests.jobs.backends.retrying import TERMINATED, AwsBatch, End, Gke, GoogleBatch, How, JobSet, Machines, Platform

COUNT = 1000
FAILURES, RECLAIMS = (None, 0, 1, 2, 4), (None, 0, 1, 3, 5)
LOST: tuple[How, How] = ("lost", "stopped")
"""How a reclaim ends an attempt: whether the command was told in time, and stopped by itself."""
OWN_CODES, NOT_EXECUTABLE, NOT_FOUND = (1, 2, 3, 134, 137, 139, 255), 126, 127


@dataclass(frozen=True)
class Budget:
    """How many attempts after the first a job file allows for its own failures, for reclaims, and for both together."""

    failed: float
    lost: float
    both: float = math.inf

    def allows(self, failed: int, lost: int) -> bool:
        """Whether another attempt follows so many."""
        return failed <= self.failed and lost <= self.lost and failed + lost <= self.both


def shared(count: float) -> Budget:
    """Of one count for both: what one kind leaves the other may use."""
    return Budget(count, count, count)


def one_count(retries: int | None, lost_retries: int | None, unsaid: Budget) -> Budget:
    """Of a platform that counts both together. `unsaid`: where the job file says nothing of reclaims."""
    own = retries or 0
    if lost_retries is None:
        return unsaid
    return shared(own + lost_retries) if own and lost_retries else Budget(own, lost_retries)


def on_aws(retries: int | None, lost_retries: int | None) -> Budget:
    return one_count(retries, lost_retries, Budget(0, 2) if retries is None else shared(retries))


def on_google_batch(retries: int | None, lost_retries: int | None) -> Budget:
    return one_count(retries, lost_retries, shared(retries) if retries else Budget(0, 3))


def on_gke(retries: int | None, lost_retries: int | None) -> Budget:
    return one_count(retries, lost_retries, Budget(retries or 0, math.inf))


def on_machines(retries: int | None, lost_retries: int | None) -> Budget:
    return Budget(retries or 0, 3 if lost_retries is None else lost_retries)


@dataclass(frozen=True)
class Kind:
    """`final`: exit codes of a command that cannot be run, by which the platform knows one. `late`: whether it knows an
    attempt that ran out of its time. `kept`: whether it remembers every attempt."""

    make: Callable[..., Platform]
    budget: Callable[[int | None, int | None], Budget]
    final: tuple[int, ...] = (NOT_EXECUTABLE, NOT_FOUND)
    late: bool = False
    kept: bool = True


BACKENDS = {
    "aws-batch": Kind(AwsBatch.of, on_aws, late=True),
    "google-batch": Kind(GoogleBatch.of, on_google_batch, late=True),
    "gke": Kind(Gke.of, on_gke),
    "gke-array": Kind(Gke.of_array, on_gke, kept=False),
    "gke-jobset": Kind(JobSet.of, on_gke, final=(), kept=False),
    "gce": Kind(Machines.of_gce, on_machines),
    "tpu-vm": Kind(Machines.of_tpus, on_machines),
}


@cache
def rendered(name: str, retries: int | None, lost_retries: int | None) -> Platform:
    given = {"retries": retries, "lost_retries": lost_retries}
    return BACKENDS[name].make(**{field: value for field, value in given.items() if value is not None})


@dataclass
class Run:
    ends: list[End]
    redone: list[float]
    """By attempt: seconds of work that the next one has to do again."""


def run(platform: Platform, job: Task, events: Schedule, chance: random.Random, *, late: bool) -> Run:
    """The job until its platform does not try it again. An attempt goes on from the last checkpoint."""
    found, now, saved = Run([], []), 0.0, 0.0
    while True:
        begun = events.available_at(now + 1)  # no machine comes at once
        works = begun + chance.uniform(0, job.start_s)
        end = End("done", 0, begun, works + job.work_s - saved)
        what = chance.random()
        if what < 0.25:
            code, part = chance.choice(OWN_CODES), chance.random()
            end = End("failed", code, begun, works + part * (job.work_s - saved))
        elif what < 0.30:
            end = End("failed", chance.choice((NOT_EXECUTABLE, NOT_FOUND)), begun, works)
        elif what < 0.35 and late:
            end = End("late", 137, begun, works + chance.random() * (job.work_s - saved))
        if (reclaimed := events.next_reclaim(begun)) < end.stop:
            end = End(chance.choice(LOST), TERMINATED, begun, reclaimed)
        found.ends.append(end)
        if end.how != "done":
            done = saved + max(end.stop - works, 0.0)
            kept = saved + max(end.stop - works, 0.0) // job.checkpoint_s * job.checkpoint_s
            found.redone.append(done - kept)
            saved, now = kept, end.stop
        if end.how == "done" or not platform.again(found.ends):
            return found


def broken(name: str, retries: int | None, lost_retries: int | None, ends: Sequence[End]) -> str:
    """The first attempt after which the platform did otherwise than the job file says; nothing where there is none."""
    kind, budget, failed, lost = BACKENDS[name], BACKENDS[name].budget(retries, lost_retries), 0, 0
    # Of AWS's five rules four name what a reclaim is, where that is final and failures are not.
    unnamed = NOT_EXECUTABLE if name == "aws-batch" and retries and lost_retries == 0 else None
    for number, each in enumerate(ends, 1):
        goes_on = number < len(ends)
        lost += each.how in LOST
        failed += each.how in ("failed", "late")
        final = each.how in ("late", "done") or (
            each.how == "failed" and each.code in kind.final and each.code != unnamed
        )
        if goes_on != (not final and budget.allows(failed, lost)):
            return f"{each.how} {each.code} as number {number}: {'tried again' if goes_on else 'final'}"
    return ""


def schedules(name: str) -> list[tuple[int, int | None, int | None, Task, Schedule]]:
    found: list[tuple[int, int | None, int | None, Task, Schedule]] = []
    for seed in range(COUNT):
        chance = random.Random(f"{name} {seed}")
        job = task(seed)
        events = schedule(KINDS[seed % len(KINDS)], seed, NEVER_ENDS * job.work_s)
        found.append((seed, chance.choice(FAILURES), chance.choice(RECLAIMS), job, events))
    return found


@pytest.mark.parametrize("name", list(BACKENDS))
def test_a_job_ends_well_exactly_if_its_file_allows_the_attempts(name: str) -> None:
    kind, seen = BACKENDS[name], dict.fromkeys(("done", "failed", *LOST, "late", "again"), 0)
    for seed, retries, lost_retries, job, events in schedules(name):
        platform, where = rendered(name, retries, lost_retries), (name, seed, retries, lost_retries)
        found = run(platform, job, events, random.Random(f"run {name} {seed}"), late=kind.late)
        assert not (said := broken(name, retries, lost_retries, found.ends)), (*where, said)
        assert all(redone <= job.checkpoint_s for redone in found.redone), where
        if not retries:
            assert sum(each.how == "failed" for each in found.ends) <= 1, where
        last, lost = found.ends[-1], [each for each in found.ends if each.how in LOST]
        status = platform.status(found.ends)
        assert (status.phase is Phase.SUCCEEDED) == (last.how == "done"), where
        if kind.kept:
            hours = platform.gpus * sum(each.stop - each.start for each in lost) / 3600
            assert (status.attempts, status.lost) == (len(found.ends), len(lost)), where
            assert (status.lost_gpu_hours or 0.0) == pytest.approx(hours, abs=0.01), where
        seen[last.how] += 1
        seen["again"] += len(found.ends) > 1
    assert all(count > 20 for how, count in seen.items() if how != "late" or kind.late), f"proves little: {seen}"


@pytest.mark.parametrize("name", ["aws-batch", "google-batch", "gke"])
def test_a_policy_that_allows_one_more_is_found(name: str) -> None:
    class OneMore:
        """The same platform, which forgets the first attempt."""

        gpus = 1

        def __init__(self, platform: Platform) -> None:
            self.platform, self.status = platform, platform.status

        def again(self, so_far: Sequence[End]) -> bool:
            return self.platform.again(so_far[1:] or so_far)

    assert any(
        broken(
            name,
            retries,
            lost,
            run(
                OneMore(rendered(name, retries, lost)), job, events, random.Random(seed), late=BACKENDS[name].late
            ).ends,
        )
        for seed, retries, lost, job, events in schedules(name)[:50]
    )
