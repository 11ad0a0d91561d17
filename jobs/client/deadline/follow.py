"""One look at a job that is on Spot for now, and the action that follows.

    job on Spot                                   action
    succeeded                                     none
    live, slack left                              none
    live, no slack left, or moved already         record the move, and cancel the job
    stopping                                      none until it has ended
    ended, moved                                  continue on demand
    ended, preempted or no capacity too often     continue on demand
    ended otherwise: its own failure, a user's    none

Nothing is kept between two looks. Any number of clients may look, and again after a crash. The platform (the reason of
the cancel) or the record says that a job was moved. There is one job on demand, since its key derives from the first
job's reference; it is sent only once the first has ended, so that only one of them runs at a time.

The lines that the job prints (jobs/runtime/lines.py) show how much work is left. Only saved work counts as done: the
step of the last reported checkpoint. A job that reports no checkpoint counts with its newest step, and its unsaved work
is part of the changeover. A program writes these lines, so anything may be in them; values that are no sensible number
are ignored.
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
"""Steps to see before their pace counts."""


@dataclass(frozen=True)
class RemainingWork:
    """Work that is left. `work_s` is seconds on one undisturbed machine; `told` says in words what that is based on."""

    work_s: float
    told: str


@dataclass
class _Seen:
    step: float | None = None
    steps: float | None = None
    saved: float | None = None
    """Step of the last checkpoint; None where none was reported."""
    gone_steps: float = 0.0
    gone_s: float = 0.0
    """Steps forward that were seen within attempts, and the seconds that they took."""
    last: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """Step of each source, and the time at which it reached that step."""

    def take(self, source: str, line: dict[str, Any]) -> None:
        step, steps, at = _number(line.get("step")), _number(line.get("steps")), _number(line.get("at")) or 0.0
        resumes = line.get("event") == "resume"
        if resumes:
            self.last.pop(source, None)  # neither the time since its last step nor that of its start was spent on steps
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
                self.saved = min(self.saved, step)  # it has gone back further than its last checkpoint
        if line.get("event") == "checkpoint" and self.step is not None:
            self.saved = self.step


def remaining_work(lines: Iterable[tuple[str, str]], work_s: float, *, measured_alone: bool = False) -> RemainingWork:
    """Return what is left of a job whose whole work takes `work_s` seconds. `lines` are those of all attempts in their
    order, each with its source (node and attempt). The measured pace, once a few steps have been seen, makes the result
    longer and never shorter; with `measured_alone` (where `work_s` is no more than a limit) only the pace counts."""
    seen = _Seen()
    for source, text in lines:
        if (told := read(text)) is not None:
            seen.take(source, told)
    done = seen.saved if seen.saved is not None else seen.step
    if not seen.steps or done is None:
        return RemainingWork(work_s, "it has reported no steps, so all of its work counts as left")
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
"""Google Batch's state of a cancelled job."""
STOPPING = "stopping: "
"""Beginning of the reason of a live job that is being cancelled, where its platform reports that."""
LOOKS_A_READ = 10

Send = Callable[["Plan", Backend, "Request"], JobRef]


@dataclass
class Follower:
    """Follower of one job on Spot. `send` submits the job on demand; `say` reports decisions."""

    ref: JobRef
    backend: Backend
    plan: Plan
    known: "Targets"
    send: Send
    say: Callable[[str], None] = lambda text: None
    every_s: float | None = None
    """Longest time until the next look, in seconds; without it, the policy's own pause. A round over many jobs takes
    time, so the time between the last two looks counts where it is longer."""
    clock: Callable[[], float] = time.time
    _looked: float = field(default=math.inf, init=False)
    _apart_s: float = field(default=0.0, init=False)
    """Seconds between the last two looks; at most a changeover, for a client that slept."""
    _left: RemainingWork | None = field(default=None, init=False)
    """Work left at the last reading; None before that, when all of the work is left."""
    _again: float = field(default=-math.inf, init=False)
    """Time of the next reading."""
    _gone_on: tuple[JobRef, Backend] | None = field(default=None, init=False)
    _told: bool = field(default=False, init=False)

    def look(self) -> tuple[Status, tuple[JobRef, Backend] | None]:
        """Return the status, and the job on demand once there is one. Raises as the backend's calls and a submit do."""
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
        """Read the log every few looks, since a live job may be slower than its file says, or go back further than
        reported; and before a move that an older reading suggests."""
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
        """Return False where the job has printed nothing."""
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
    """Return words to follow the report of its end; empty where its platform does not count."""
    if status.attempts is None or status.lost is None:
        return ""
    return f" ({status.lost} of {status.attempts} attempts were lost)"
