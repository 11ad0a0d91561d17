"""`spot: prefer` in the commands: jobs that move to on demand when their deadline nears."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from accel.clouds.pauses import Pauses
from accel.console.errors import say
from accel.console.heartbeat import Beat
from accel.console.options import Settings, program
from accel.contract.variables import PLAN
from accel.diagnostics.errors import BadInput, CloudSilent, Interrupted, WaitedTooLong

from ..model.deadline import look_s
from . import history, waiting
from .accrued_cost import size_of
from .allowances.submitter import reserve, settle_ended_jobs
from .deadline.follow import Follower
from .deadline.plan import plan_of
from .dispatch import record_history, submit_one
from .waiting import describe_status, so_far, wait_to_end

if TYPE_CHECKING:
    from ..backends.base import Backend, JobRef, Request, Status
    from ..model.job import Job
    from .allowances.submitter import Submitter
    from .bulk import Item
    from .deadline.plan import Plan
    from .dispatch import Receipts
    from .targets import Targets

NAMED = 5
"""Most jobs that a message names; it names the targets of more."""


def check(jobs: "Sequence[Job]", wait: bool, follow: bool) -> None:
    """Raise BadInput where the options would keep the job from moving."""
    if follow:
        raise BadInput("--follow: does not move a job with spot: prefer", "--wait does; `logs -f` shows what it prints")
    if wait and len(jobs) > 1:
        raise BadInput(f"--wait: moves one job with spot: prefer, and there are {len(jobs)}", "`tend` moves many")


def alone(pairs: "Sequence[tuple[Job, Item]]", made: "Sequence[JobRef]") -> None:
    """Say which command moves jobs that no client waits for."""
    sent = [(ref, request.target) for ref, (job, (_, request)) in zip(made, pairs, strict=True) if PLAN in job.env]
    names = [" ".join(str(ref) for ref, _ in sent)]
    if len(sent) > NAMED:
        names = [f"--to {target}" for target in dict.fromkeys(target for _, target in sent)]
    tends = " and ".join(f"`{program()} tend {each} --every 30s`" for each in names)
    what, beside = ("it", ", or --wait is given") if len(sent) == 1 else ("them", "")
    say(f"nobody moves {what} to on demand unless {tends} runs{beside}")


def run(
    ref: "JobRef",
    backend: "Backend",
    known: "Targets",
    timeout: int | None,
    settings: Settings,
    caller: str,
    receipts: "Receipts",
) -> None:
    """Wait for the job, and move it in time. Raises JobFailed; Interrupted and WaitedTooLong say how to go on."""
    plan = plan_of(backend, ref)
    if plan is None:
        raise BadInput(f"{ref}: carries no plan by which it would go on on demand")

    beat = Beat(bar=False)

    def send(backend: "Backend", request: "Request", submitter: "Submitter") -> "JobRef":
        return submit_one(backend, request, caller, settings, submitter, receipts)

    follower = Follower(ref, backend, plan, known, partial(_sent, known, settings, send), beat.tell)
    pauses, seen = Pauses(timeout), time.monotonic()
    last: Status | None = None
    silent = False
    try:
        with beat.of(lambda: so_far(ref, last, pauses.waited_s, time.monotonic() - seen)):
            while True:
                try:
                    status, second = follower.look()
                    silent, seen = False, time.monotonic()
                except CloudSilent as error:
                    if not silent:
                        beat.tell(f"{ref}: cannot be seen just now ({error.message}); still waiting")
                    silent, status, second = True, None, None
                if status is not None and (last is None or describe_status(status) != describe_status(last)):
                    pauses.restart()
                    beat.tell(f"{ref}: {describe_status(status)}")
                last = status or last
                if second or (status is not None and status.phase.ended):
                    break
                pause_s = pauses.next_s(look_s(plan.changeover_s))
                if pause_s is None:
                    said = f"{ref}: has not ended within {timeout} s; it goes on, and nobody moves it"
                    raise WaitedTooLong(said, _how(ref))
                time.sleep(pause_s)
        ended = [status] if status else []
        settle_ended_jobs(ended)
        if second:
            wait_to_end([second], None, None if pauses.left_s is None else max(1, int(pauses.left_s)))
        else:
            waiting.end(ended)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {ref} goes on, and nobody moves it to on demand", _how(ref)) from None


class Followers:
    """Followers of `tend`, kept from round to round."""

    def __init__(self, known: "Callable[[], Targets]", settings: Settings, every_s: float | None) -> None:
        self._known, self._settings, self._every_s = known, settings, every_s
        self._followers: dict[JobRef, Follower | None] = {}

    def look(self, ref: "JobRef", backend: "Backend") -> "Status | None":
        """Advance the job once. Return its status, or its on-demand successor's; None for a job without a plan."""
        if ref not in self._followers:
            plan = plan_of(backend, ref)
            self._followers[ref] = self._follower(ref, backend, plan) if plan else None
        follower = self._followers[ref]
        if follower is None:
            return None
        status, second = follower.look()
        return second[1].status(second[0]) if second else status

    def _follower(self, ref: "JobRef", backend: "Backend", plan: "Plan") -> Follower:
        known = self._known()
        return Follower(
            ref,
            backend,
            plan,
            known,
            partial(_sent, known, self._settings, partial(_quietly, self._settings)),
            say,
            self._every_s,
        )


def _quietly(settings: Settings, backend: "Backend", request: "Request", submitter: "Submitter") -> "JobRef":
    ref = submitter.submit(backend, request)
    if str(ref) not in (entry["ref"] for entry in history.recent()):
        say(f"{ref}: submitted to {request.target}")
        record_history(ref, request, "", submitter, settings)
    return ref


def _sent(
    known: "Targets",
    settings: Settings,
    send: "Callable[[Backend, Request, Submitter], JobRef]",
    plan: "Plan",
    backend: "Backend",
    request: "Request",
) -> "JobRef":
    for warning in request.warnings:
        say(f"warning: {warning}")  # not refused under --strict: the deadline is near
    with reserve([(plan.on_demand, (backend, request))], known, settings) as submitter:
        submitter.sizes = {request.key: size_of(plan.on_demand)}
        return send(backend, request, submitter)


def _how(ref: "JobRef") -> str:
    return f"`{program()} tend {ref} --every 30s` goes on moving it"
