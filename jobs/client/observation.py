"""State of watched jobs: their statuses, and the progress that their tasks report."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from ..backends.base import Attempt, JobRef, Phase, Status
from .progress import ProgressLine, mean, place_of

SOURCES_KEPT = 50_000
_ENDED = ("succeeded", "failed", "cancelled")
_RUNNING = ("running",)
"""Platforms' words for the state of a running task, in lower case; tasks in other states wait."""


class Task:
    """A task, a node, or the only task of a job: its last report, and its pace."""

    __slots__ = (
        "at",
        "attempt",
        "begun",
        "begun_at",
        "fraction",
        "memory_use",
        "metrics",
        "number",
        "step",
        "steps",
        "use",
    )

    def __init__(self, number: int | None) -> None:
        self.number = number
        self.attempt = 1
        self.at = 0.0
        self.step: float | None = None
        self.steps: float | None = None
        self.fraction: float | None = None
        self.begun_at = 0.0
        self.begun = 0.0
        """Time of this attempt's first reported step, and the fraction that was done by then."""
        self.metrics: dict[str, float] = {}
        self.use: float | None = None
        self.memory_use: float | None = None

    def take(self, told: ProgressLine, attempt: int) -> None:
        """Ignore a line of an earlier attempt, or older than the last."""
        if attempt < self.attempt or (attempt == self.attempt and told.at < self.at):
            return
        self.at = told.at
        if told.steps:
            self.steps = told.steps
        if told.step is not None:
            self.step = told.step
            fraction = min(told.step / self.steps, 1.0) if self.steps else None
            # A new attempt, which not every platform's log names, begins at its checkpoint.
            again = attempt > self.attempt or told.event == "resume"
            if fraction is not None and (self.fraction is None or again or fraction < self.fraction):
                self.begun_at, self.begun = told.at, fraction
            self.fraction = fraction if fraction is not None else self.fraction
        if told.metrics:
            self.metrics = {**self.metrics, **told.metrics}
        if told.use is not None:
            self.use = told.use
        if told.memory_use is not None:
            self.memory_use = told.memory_use
        self.attempt = attempt

    def eta_s(self, now: float) -> float | None:
        """Return None where this attempt has no pace yet."""
        if self.fraction is None or self.fraction <= self.begun or self.at <= self.begun_at:
            return None
        return _left_s((self.begun_at, self.begun), (self.at, self.fraction), now)


@dataclass(frozen=True)
class Rate:
    """Cost of one machine of a job, in USD per hour: the lowest and the highest possible."""

    low: float
    high: float
    nodes: int = 1
    """Machines of one task."""


@dataclass
class WatchedJob:
    """A watched job, as its platform and its own lines report it."""

    ref: JobRef
    name: str = ""
    status: Status | None = None
    note: str = ""
    """Why the job waits, or that it cannot be seen."""
    rate: Rate | None = None
    free: bool = False
    target: str | None = None
    """Name of the target, where the platform does not report it."""
    attempts: tuple[Attempt, ...] = ()
    """Attempts of a job that was tried more than once."""
    tasks: dict[int | None, Task] = field(default_factory=dict[int | None, Task])
    ran_s: float = 0.0
    """Task seconds of an array since the watch began."""
    missed: bool = False
    """True for an array that ran before the watch began."""
    looked: float | None = None
    begun: tuple[float, float] | None = None
    """Time at which an array was first seen to run, and the fraction that was done by then."""

    @property
    def phase(self) -> Phase | None:
        return self.status.phase if self.status else None

    @property
    def size(self) -> int:
        """Number of an array's tasks; 0 for any other job."""
        return sum(self.status.tasks.values()) if self.status else 0

    def counted(self, words: Iterable[str]) -> int:
        counts = self.status.tasks if self.status else {}
        return sum(count for native, count in counts.items() if native.lower() in words)

    @property
    def ended(self) -> int:
        return self.counted(_ENDED)

    @property
    def running(self) -> int:
        return self.counted(_RUNNING)

    def saw(self, status: Status, now: float) -> None:
        """Take `now` in seconds since 1970."""
        if self.looked is not None:
            self.ran_s += self.running * (now - self.looked)
        elif status.tasks and status.started:
            self.missed = now - status.started.timestamp() > 60
        self.looked = now
        self.status = status
        self.name = status.name
        if self.size and self.begun is None and self.running:
            self.begun = (now, self.fraction or 0.0)

    def heard(self, source: str, told: ProgressLine, places: "Places") -> None:
        number, attempt = places.of(source)
        task = self.tasks.get(number)
        if task is None:
            task = self.tasks[number] = Task(number)
        task.take(told, attempt)

    @property
    def fraction(self) -> float | None:
        """Fraction done, 0 to 1; None where no task reports. The slowest node counts for a job of several."""
        told = [task.fraction for task in self.tasks.values() if task.fraction is not None]
        if self.size:
            # The tasks with the most progress count as those that have ended, and the next as those that run.
            ahead = sorted(told, reverse=True)[self.ended : self.ended + self.running]
            return min(1.0, (self.ended + sum(ahead)) / self.size)
        return min(told, default=None)

    @property
    def is_told(self) -> bool:
        """Whether its tasks have reported their last step: no more progress will come."""
        return len(self.tasks) >= max(self.size, 1) and all(task.fraction == 1 for task in self.tasks.values())

    def eta_s(self, now: float) -> float | None:
        """Return the seconds to its end, at the pace since it began; for an array, since the watch began."""
        if self.phase is not Phase.RUNNING:
            return None
        if not self.size:
            return max((eta for task in self.tasks.values() if (eta := task.eta_s(now)) is not None), default=None)
        done = self.fraction
        if self.begun is None or done is None or self.looked is None or done <= self.begun[1]:
            return None
        return _left_s(self.begun, (self.looked, done), now)

    @property
    def use(self) -> float | None:
        """Average use of its GPUs, in %, as last reported."""
        return mean([task.use for task in self.tasks.values() if task.use is not None])

    @property
    def memory_use(self) -> float | None:
        """Average share of time, in %, with reads or writes of its GPUs' memory."""
        return mean([task.memory_use for task in self.tasks.values() if task.memory_use is not None])

    def machine_s(self, now: float) -> float | None:
        """Return the seconds that machines ran for the job; None where that is not known."""
        status = self.status
        if status is None:
            return None
        if self.size:
            return self.ran_s + (self.running * (now - self.looked) if self.looked else 0.0)
        if self.attempts:
            return ran_s(self.attempts, now)
        if status.started is None:
            return 0.0 if status.phase in (Phase.QUEUED, Phase.STARTING) else None
        return _span(status.started, status.stopped, now)

    def cost(self, now: float) -> tuple[float, float] | None:
        """Return the lowest and highest USD so far; None where a price or time is not known."""
        if self.free:
            return 0.0, 0.0
        seconds = self.machine_s(now)
        if self.rate is None or seconds is None:
            return None
        each = any(attempt.place is not None for attempt in self.attempts)
        hours = seconds * (1 if each else self.rate.nodes) / 3600
        return hours * self.rate.low, hours * self.rate.high

    def slowest(self, count: int) -> list[Task]:
        from heapq import nsmallest

        going = [task for task in self.tasks.values() if task.fraction is not None and task.fraction < 1]
        return nsmallest(count, going, key=lambda task: (task.fraction, task.at, task.number))


class Places:
    """Cache of the tasks that log sources stand for; every line repeats one of few sources."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int | None, int]] = {}

    def of(self, source: str) -> tuple[int | None, int]:
        found = self._known.get(source)
        if found is None:
            if len(self._known) >= SOURCES_KEPT:
                self._known.clear()
            found = self._known[source] = place_of(source)
        return found


@dataclass
class Board:
    """All watched jobs, in the order in which they were added."""

    jobs: dict[JobRef, WatchedJob] = field(default_factory=dict[JobRef, WatchedJob])
    places: Places = field(default_factory=Places)

    def job(self, ref: JobRef) -> WatchedJob:
        if ref not in self.jobs:
            self.jobs[ref] = WatchedJob(ref, ref.id)
        return self.jobs[ref]

    def counts(self) -> dict[Phase, int]:
        phases = [job.phase for job in self.jobs.values()]
        return {phase: phases.count(phase) for phase in Phase if phase in phases}


def _left_s(begun: tuple[float, float], last: tuple[float, float], now: float) -> float | None:
    """Extrapolate from two times and fractions; once the time left has passed, assume a slower pace."""
    if last[0] <= begun[0]:
        return None
    a_second = (last[1] - begun[1]) / (last[0] - begun[0])
    left = (1 - last[1]) / a_second
    quiet = max(0.0, now - last[0])
    return left - quiet if quiet < left else left * (now - begun[0]) / (last[0] - begun[0])


def ran_s(attempts: Iterable[Attempt], now: float) -> float:
    """Count an attempt without an end as still running."""
    return sum(_span(each.started, each.stopped, now) for each in attempts if each.started)


def _span(start: datetime, end: datetime | None, now: float) -> float:
    return max(0.0, (end.timestamp() if end else now) - start.timestamp())
