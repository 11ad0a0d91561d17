"""Waiting for jobs: a job that cannot be seen has not failed, and a failed job is reported with its reason."""

import time
from collections.abc import Callable, Iterator

from accel.clouds.pauses import Pauses
from accel.console.errors import say
from accel.console.heartbeat import QUIET_S, Beat, SoFar
from accel.console.options import program
from accel.console.terminal_text import lasting
from accel.diagnostics.errors import CloudSilent, Interrupted, JobFailed, WaitedTooLong
from accel.diagnostics.messages import first_of

from ..backends.base import Backend, JobRef, Many, Phase, Status, TendedBackend
from .allowances.submitter import settle_ended_jobs
from .observation import WatchedJob
from .wait_reasons import Pending

FollowLog = Callable[[Backend, JobRef], None]
"""Function that prints a job's log until the job has ended."""

LONGEST_S = {"local": 1.0}
LONGEST_ELSEWHERE_S = 10.0
NAMED = 10
STILL, UNSEEN = "still waiting after", "has not been seen yet"
AT_ONCE = 100
CALLS_APART_S = 0.5
"""Seconds per call in a look at hundreds of jobs: two calls a second."""


def wait_for(
    jobs: list[tuple[JobRef, Backend]],
    timeout_s: float | None,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    quiet_s: float = QUIET_S,
) -> list[Status]:
    """Print changes of state, and the progress after `quiet_s` seconds without any. Raises WaitedTooLong, Interrupted
    (both say that the job goes on), NotFound, NoCredentials or CloudRefused."""
    beat = Beat(quiet_s)
    waiting = Waiting(jobs, timeout_s, beat.tell, clock, counts=not beat.live)
    try:
        with beat.of(lambda: waiting.so_far):
            waiting.run(sleep)
        return waiting.statuses
    except KeyboardInterrupt:
        raise interruption(waiting.left) from None


class Waiting:
    """A wait for jobs, look by look. `tell` gets changes of state, with `counts` also those of an array's tasks."""

    def __init__(
        self,
        jobs: list[tuple[JobRef, Backend]],
        timeout_s: float | None,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        counts: bool = True,
    ) -> None:
        self.left = list(jobs)
        """Jobs that are not known to have ended."""
        self._refs = [ref for ref, _ in jobs]
        self._last: dict[JobRef, Status] = {}
        self._unseen: set[JobRef] = set()
        self._tell, self._clock, self._counts = tell, clock, counts
        self._pauses = Pauses(timeout_s, clock)
        self._pending = Pending(tell, clock)
        self._seen: dict[JobRef, float] = {}

    @property
    def statuses(self) -> list[Status]:
        """Last status of each job, once all have ended."""
        return [self._last[ref] for ref in self._refs]

    @property
    def so_far(self) -> SoFar:
        """Progress of the wait. Another thread may call this."""
        now, last = self._clock(), dict(self._last)
        waited = lasting(self._pauses.waited_s)
        if len(self._refs) > 1:
            ended = sum(status.phase.ended for status in last.values())
            phases = [status.phase for status in last.values()]
            live = [f"{count} {phase}" for phase in Phase if not phase.ended and (count := phases.count(phase))]
            text = ", ".join([f"{ended} of {len(self._refs)} jobs have ended", *live])
            return SoFar(f"{text}; {STILL} {waited}", f"{text}  {waited}", ended / len(self._refs))
        (ref,) = self._refs
        return so_far(ref, last.get(ref), self._pauses.waited_s, now - self._seen.get(ref, now))

    def run(self, sleep: Callable[[float], None] = time.sleep) -> None:
        while (pause_s := self.look()) is not None:
            sleep(pause_s)

    def look(self) -> float | None:
        """Return the seconds until the next look; None at the end. Raises WaitedTooLong, and as look_at does."""
        for ref, backend, status in look_at(self.left, self._unseen, self._tell):
            before = self._last.get(ref)
            moved = before is None or (before.phase, before.native) != (status.phase, status.native)
            if moved or (self._counts and before and before.tasks != status.tasks):
                self._tell(f"{ref}: {describe_status(status)}{in_words(status) if self._counts else ''}")
            if moved:
                self._pauses.restart()
            self._last[ref], self._seen[ref] = status, self._clock()
            self._pending.look(ref, backend, status)
            if status.phase.ended:
                self.left.remove((ref, backend))
        if not self.left:
            settle_ended_jobs(self._last.values(), self._tell)
            return None
        pause_s = pause(self._pauses, self.left)
        if pause_s is None:
            said = f"{_names(self.left)}: has not ended within {self._pauses.timeout_s:g} s; it goes on"
            raise WaitedTooLong(said, _how(self.left))
        return pause_s


def pause(pauses: Pauses, jobs: list[tuple[JobRef, Backend]]) -> float | None:
    """Return None where the wait is over."""
    longest_s = min(LONGEST_S.get(ref.kind, LONGEST_ELSEWHERE_S) for ref, _ in jobs)
    return pauses.next_s(longest_s, least_s=CALLS_APART_S * (len(jobs) // AT_ONCE))


def interruption(jobs: list[tuple[JobRef, Backend]]) -> Interrupted:
    return Interrupted(f"interrupted; {_names(jobs)} goes on", _how(jobs))


def end(statuses: list[Status]) -> None:
    """Raise JobFailed where jobs failed."""
    failed = [status for status in statuses if status.phase is Phase.FAILED]
    if failed:
        told = "; ".join(f"{status.ref}: {describe_status(status)}" for status in failed[:NAMED])
        told += f"; and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
        raise JobFailed(told, f"`{program()} logs {failed[0].ref}` shows what it printed")


def describe_status(status: Status) -> str:
    parts = [str(status.phase)]
    if status.phase is Phase.FAILED and status.reason:
        parts.append(status.reason)
    if status.phase is Phase.FAILED and status.exit_code is not None and "exit code" not in (status.reason or ""):
        parts.append(f"exit code {status.exit_code}")
    return ", ".join(parts)


def so_far(ref: JobRef, status: Status | None, waited_s: float, ago_s: float) -> SoFar:
    """Return the progress of a job that was last seen `ago_s` seconds ago."""
    waited = lasting(waited_s)
    if status is None:
        return SoFar(f"{ref}: {UNSEEN}; {STILL} {waited}", f"{UNSEEN}  {waited}")
    blind = f", last seen {lasting(ago_s)} ago" if ago_s > 2 * LONGEST_ELSEWHERE_S else ""
    job = WatchedJob(ref, status=status)
    tasks = f"{job.ended} of {job.size} tasks  " if job.size else ""
    return SoFar(
        f"{ref}: {describe_status(status)}{in_words(status)}{blind}; {STILL} {waited}",
        f"{tasks}{describe_status(status)}{blind}  {waited}",
        job.ended / job.size if job.size else None,
    )


def in_words(status: Status) -> str:
    """Return the tasks of a live array by state, to follow its own state."""
    counts = ", ".join(f"{count:,} {native}" for native, count in status.tasks.items())
    return f", tasks: {counts}" if counts and not status.phase.ended else ""


def current_statuses(jobs: list[tuple[JobRef, Backend]]) -> list[Status]:
    """Return the current statuses, many with one call. Raises NotFound, CloudSilent and what else status raises."""
    known: dict[JobRef, Status] = {}
    for group, backend in _groups(jobs):
        if len(group) > 1 and isinstance(backend, Many):
            known |= backend.statuses(group)
    return [known.get(ref) or backend.status(ref) for ref, backend in jobs]


def _groups(jobs: list[tuple[JobRef, Backend]]) -> list[tuple[list[JobRef], Backend]]:
    groups: dict[tuple[str, str], tuple[list[JobRef], Backend]] = {}
    for ref, backend in jobs:
        groups.setdefault((ref.kind, ref.scope), ([], backend))[0].append(ref)
    return list(groups.values())


def look_at(
    waiting: list[tuple[JobRef, Backend]], unseen: set[JobRef], tell: Callable[[str], None] = say
) -> Iterator[tuple[JobRef, Backend, Status]]:
    """Skip a job that cannot be seen, and say so once. Raises NotFound, NoCredentials or CloudRefused."""
    known: dict[JobRef, Status] = {}
    silent: set[JobRef] = set()
    for group, backend in _groups(waiting):
        if len(group) > 1 and isinstance(backend, Many) and not isinstance(backend, TendedBackend):
            try:
                known |= backend.statuses(group)
            except CloudSilent as error:
                silent |= set(group)
                _cannot_see(f"{group[0]} and {len(group) - 1} more", group[0], error, unseen, tell)
    for ref, backend in list(waiting):
        if ref in silent:
            continue
        # A single job, or one that AWS Batch left out of its answer; the latter raises NotFound.
        status = known.get(ref) or _look(ref, backend, unseen, tell)
        if status is not None:
            unseen.discard(ref)
            yield ref, backend, status


def _cannot_see(shown: str, ref: JobRef, error: CloudSilent, unseen: set[JobRef], tell: Callable[[str], None]) -> None:
    if ref not in unseen:
        tell(f"{shown}: cannot be seen just now ({error.message}); still waiting")
        unseen.add(ref)


def _look(ref: JobRef, backend: Backend, unseen: set[JobRef], tell: Callable[[str], None]) -> Status | None:
    try:
        return backend.tend(ref, tell) if isinstance(backend, TendedBackend) else backend.status(ref)
    except CloudSilent as silent:
        _cannot_see(str(ref), ref, silent, unseen, tell)
        return None


def _names(waiting: list[tuple[JobRef, Backend]]) -> str:
    return first_of([str(ref) for ref, _ in waiting], NAMED)


def _how(waiting: list[tuple[JobRef, Backend]]) -> str:
    return f"`{program()} wait {waiting[0][0]}` continues to wait, `{program()} get {waiting[0][0]}` shows it"


def wait_to_end(jobs: list[tuple[JobRef, Backend]], follow_log: FollowLog | None, timeout: int | None) -> None:
    """Follow the log of a single job, then wait. Raises JobFailed; Interrupted says that the jobs go on."""
    try:
        if follow_log:
            follow_log(jobs[0][1], jobs[0][0])
        end(wait_for(jobs, timeout))
    except KeyboardInterrupt:  # before the wait began
        raise interruption(jobs) from None
