"""Waiting for jobs: what cannot be seen is not failed, and what failed says why."""

import time
from collections.abc import Callable

from ..backend import Backend, JobRef, Phase, Status
from ..errors import CloudSilent, Interrupted, JobFailed, WaitedTooLong
from .report import say
from .settings import program

FIRST_S = 0.1
GROWTH = 1.5
LONGEST_S = {"local": 1.0}
LONGEST_ELSEWHERE_S = 10.0


def wait_for(
    jobs: list[tuple[JobRef, Backend]],
    timeout_s: float | None,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> list[Status]:
    """Until every job has ended; changes of state are said.

    Raises WaitedTooLong, Interrupted (both say that the job goes on), NotFound, NoCredentials or
    CloudRefused.
    """
    last: dict[JobRef, Status] = {}
    unseen: set[JobRef] = set()
    waiting = list(jobs)
    give_up = None if timeout_s is None else clock() + timeout_s
    pause = FIRST_S
    try:
        while True:
            for ref, backend in list(waiting):
                status = _look(ref, backend, unseen)
                if status is None:
                    continue
                if ref not in last or (last[ref].phase, last[ref].native) != (status.phase, status.native):
                    pause = FIRST_S
                    say(f"{ref}: {described(status)}")
                last[ref] = status
                if status.phase.ended:
                    waiting.remove((ref, backend))
            if not waiting:
                return [last[ref] for ref, _ in jobs]
            left = None if give_up is None else give_up - clock()
            if left is not None and left <= 0:
                names = ", ".join(str(ref) for ref, _ in waiting)
                raise WaitedTooLong(f"{names}: has not ended within {timeout_s:g} s; it goes on", _how(waiting))
            longest = min(LONGEST_S.get(ref.kind, LONGEST_ELSEWHERE_S) for ref, _ in waiting)
            sleep(min(pause, longest) if left is None else min(pause, longest, left))
            pause *= GROWTH
    except KeyboardInterrupt:
        names = ", ".join(str(ref) for ref, _ in waiting)
        raise Interrupted(f"interrupted; {names} goes on", _how(waiting)) from None


def end(statuses: list[Status]) -> None:
    """Raises JobFailed for the jobs that failed."""
    failed = [status for status in statuses if status.phase is Phase.FAILED]
    if failed:
        told = "; ".join(f"{status.ref}: {described(status)}" for status in failed)
        raise JobFailed(told, f"`{program()} logs {failed[0].ref}` shows what it printed")


def described(status: Status) -> str:
    """The phase, and for an ended job its reason and exit code."""
    parts = [str(status.phase)]
    if status.phase is Phase.FAILED and status.reason:
        parts.append(status.reason)
    if status.phase is Phase.FAILED and status.exit_code is not None and "exit code" not in (status.reason or ""):
        parts.append(f"exit code {status.exit_code}")
    return ", ".join(parts)


def _look(ref: JobRef, backend: Backend, unseen: set[JobRef]) -> Status | None:
    try:
        status = backend.status(ref)
    except CloudSilent as silent:
        if ref not in unseen:
            say(f"{ref}: cannot be seen just now ({silent.message}); still waiting")
            unseen.add(ref)
        return None
    unseen.discard(ref)
    return status


def _how(waiting: list[tuple[JobRef, Backend]]) -> str:
    return f"`{program()} wait {waiting[0][0]}` goes on waiting, `{program()} get {waiting[0][0]}` shows it"
