"""One look at a job that is on Spot for now, and what is to be done then.

    job on Spot                                      what is done
    succeeded                                        nothing
    lives, slack left                                nothing
    lives, none left, or moved already               it is moved: noted as such, and cancelled
    stopping                                         nothing; it must have ended first
    ended, moved                                     goes on on demand
    ended, taken away or no capacity once too often  goes on on demand
    ended otherwise: its own failure, a user's       nothing

Nothing is kept between two looks, and each may be made by any number of clients and again after a crash. That a job
was moved is read off the platform (the reason of its cancel) or its record; the job on demand is one, since its key
comes from the first job's reference, and it is sent only once the first has ended, so that one of them runs at a time.

How much work is left is read from the lines that the job prints (jobs/runtime/lines.py). What counts as done is what is
saved: the step of the last checkpoint that it tells of. A job that tells of none is taken at its newest step, and what
it has not saved is part of the changeover. Lines are a program's own, so that anything may be in them: what is no
sensible number is passed over.
"""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accel.diagnostics.errors import CloudSilent, NotFound

from ...backends.base import Backend, JobRef, Logs, Phase, Status
from ...model.deadline import Decision, decide, look_s
from ...runtime.lines import read
from .plan import MOVED, Plan, second, second_key
from .record import Record

if TYPE_CHECKING:
    from ...backends.base import Request
    from ..targets import Targets


EVIDENCE_STEPS = 3
"""Steps that must have been seen before their pace is believed."""


@dataclass(frozen=True)
class RemainingWork:
    """`work_s`: seconds of work on one undisturbed machine. `told`: where that is from, in words."""

    work_s: float
    told: str


@dataclass
class _Seen:
    """What the lines so far say."""

    step: float | None = None
    steps: float | None = None
    saved: float | None = None
    """At the last checkpoint; None where none was told of."""
    gone_steps: float = 0.0
    gone_s: float = 0.0
    """Steps forward that were seen within attempts, and the time that they took."""
    last: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """By source: its step, and since when it has been there."""

    def take(self, source: str, line: dict[str, Any]) -> None:
        step, steps, at = _number(line.get("step")), _number(line.get("steps")), _number(line.get("at")) or 0.0
        resumes = line.get("event") == "resume"
        if resumes:
            self.last.pop(source, None)  # the time since its last step was not spent on steps, nor is that of its start
        self.steps = steps or self.steps
        if step is not None:
            before = self.last.get(source)
            if before and step > before[0] and at >= before[1]:
                self.gone_steps += step - before[0]
                self.gone_s += at - before[1]
            if not resumes and (before is None or step != before[0]):
                self.last[source] = step, at
            self.step = step
            if self.saved is not None:
                self.saved = min(self.saved, step)  # it has gone back further than it said it could
        if line.get("event") == "checkpoint" and self.step is not None:
            self.saved = self.step


def remaining_work(lines: Iterable[tuple[str, str]], work_s: float, *, measured_alone: bool = False) -> RemainingWork:
    """What is left of a job whose whole work takes `work_s`, by the lines of all its attempts in their order, each with
    its source (node and attempt).

    Its pace, once a few steps have been seen, makes that longer and never shorter; with `measured_alone` (where
    `work_s` is no more than a limit) it counts alone.
    """
    seen = _Seen()
    for source, text in lines:
        if (told := read(text)) is not None:
            seen.take(source, told)
    done = seen.saved if seen.saved is not None else seen.step
    if not seen.steps or done is None:
        return RemainingWork(work_s, "it has told of no steps, so all of its work counts as left")
    missing = max(seen.steps - done, 0.0)
    said = f"{'saved' if seen.saved is not None else 'at'} step {done:g} of {seen.steps:g}"
    declared_s = work_s * missing / seen.steps
    if seen.gone_steps < EVIDENCE_STEPS or seen.gone_s <= 0:
        return RemainingWork(declared_s, said)
    measured_s = missing * seen.gone_s / seen.gone_steps
    return RemainingWork(measured_s if measured_alone else max(declared_s, measured_s), said)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return float(value)


CANCELLED = "CANCELLED"
"""Google Batch's own word."""
STOPPING = "stopping: "
"""How the reason begins of a job that lives and is being cancelled, where its platform says so."""
LOOKS_A_READ = 10

Send = Callable[["Plan", Backend, "Request"], JobRef]


@dataclass
class Follower:
    """Of one job on Spot. `send` submits the job on demand; `say` is told what was decided."""

    ref: JobRef
    backend: Backend
    plan: Plan
    known: "Targets"
    send: Send
    say: Callable[[str], None] = lambda text: None
    every_s: float | None = None
    """Until the next look, at most; the policy's own pause without it. One after another takes its time with many
    jobs: what passed between the last two looks counts where it is more."""
    clock: Callable[[], float] = time.time
    _looked: float = field(default=math.inf, init=False)
    """When it was last looked at."""
    _apart_s: float = field(default=0.0, init=False)
    """Between the last two looks; of a client that slept, no more than a changeover."""
    _left: RemainingWork | None = field(default=None, init=False)
    """When it was last read; None before that, and all of the work is left then."""
    _again: float = field(default=-math.inf, init=False)
    """When it is to be read again."""
    _gone_on: tuple[JobRef, Backend] | None = field(default=None, init=False)
    _told: bool = field(default=False, init=False)

    def look(self) -> tuple[Status, tuple[JobRef, Backend] | None]:
        """The job on Spot now, and once it has gone on on demand the job that it is there. Raises as the backend's
        calls do, and for that job as a submit does."""
        now = self.clock()
        self._looked, self._apart_s = now, min(max(now - self._looked, 0.0), self.plan.changeover_s)
        status = self.backend.status(self.ref)
        if self._gone_on:
            return status, self._gone_on
        if status.phase is Phase.SUCCEEDED:
            return status, None
        if status.phase.ended:
            return status, self._second(status) if self._goes_on(status) else None
        stops = (status.reason or "").startswith(STOPPING)
        if self._moved(status):
            self._stop((status.reason or "").rpartition(f"{MOVED}: ")[2] if stops else "it was decided before")
        elif not stops and (decision := self.decision(status)).move:
            self._stop(decision.why)
        return status, None

    def decision(self, status: Status) -> Decision:
        """For a job that lives. Its log is read every few looks, since it may be slower than its file says, or go back
        further than it had told; and where what was read before would move it."""
        fresh = self.clock() >= self._again and self._read()
        found = self._decided(status)
        return self._decided(status) if found.move and not fresh and self._read() else found

    def _decided(self, status: Status) -> Decision:
        if status.created is None:
            raise CloudSilent(f"{self.ref}: its platform does not say when it was made, so its deadline is not known")
        return decide(
            self.clock(),
            status.created.timestamp() + self.plan.deadline_s,
            self._left.work_s if self._left else self.plan.work_s,
            self.plan.changeover_s,
            every_s=max(self.every_s or look_s(self.plan.changeover_s), self._apart_s),
            lost_left=self.plan.lost_left(status.lost or 0, self.ref.kind),
        )

    def _read(self) -> bool:
        """What the job has printed; False where there is nothing."""
        self._again = self.clock() + LOOKS_A_READ * (self.every_s or look_s(self.plan.changeover_s))
        if not isinstance(self.backend, Logs):
            return False
        try:
            lines = [(line.source, line.text) for line in self.backend.logs(self.ref)]
        except NotFound:
            return False  # it has not printed anything yet
        self._left = remaining_work(lines, self.plan.work_s, measured_alone=self.plan.job.work_s is None)
        return True

    def _moved(self, status: Status) -> bool:
        if self.plan.bucket is None:
            return MOVED in (status.reason or "")
        return self._record.moved

    def _goes_on(self, status: Status) -> bool:
        if status.taken is not None:
            return True
        return (self.plan.bucket is None or status.native == CANCELLED) and self._moved(status)

    @property
    def _record(self) -> Record:
        assert self.plan.bucket is not None
        return Record(self.plan.bucket, self.ref.id)

    def _stop(self, why: str) -> None:
        if not self._told:
            self._told = True
            at = f"; {self._left.told}" if self._left else ""
            self.say(f"{self.ref}: goes on on demand: {why}{at}")
        if self.plan.bucket is not None:
            self._record.move(why)
        self.backend.cancel(self.ref, f"{MOVED}: {why}")

    def _second(self, status: Status) -> tuple[JobRef, Backend]:
        lost = f", {status.lost_gpu_hours:g} GPU hours with them" if status.lost_gpu_hours else ""
        self.say(f"{self.ref}: ended on Spot{tries(status)}{lost}")
        backend, request = second(self.plan, self.known, second_key(self.ref))
        self._gone_on = self.send(self.plan, backend, request), backend
        return self._gone_on


def tries(status: Status) -> str:
    """How often it was tried, to be put behind what is said of its end; nothing where its platform does not tell."""
    if status.attempts is None or status.lost is None:
        return ""
    return f" ({status.lost} of {status.attempts} attempts were lost)"
