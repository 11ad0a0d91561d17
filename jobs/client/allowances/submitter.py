"""Allowances for the commands: reservations before jobs are sent, and their settlement once they have ended. Without
allowances nothing of jobs.client.allowances is imported."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from accel.console.errors import say
from accel.diagnostics.errors import JobsError

from .. import history
from ..targets import known_targets

if TYPE_CHECKING:
    from accel.console.reporter import Reporter
    from accel.contract.allowances import Allowances

    from ...backends.base import Backend, JobRef, Request, Status
    from ...model.job import Job
    from ..bulk import Item
    from ..targets import Targets
    from .reserve import Holding, ReservationRequest


class Submitter:
    """Submitter of requests, each under its reservation if it has one; `holdings` come from reserve.hold_needs."""

    def __init__(self, holdings: "Iterable[tuple[Holding, str, list[ReservationRequest]]]" = ()) -> None:
        self._holdings: dict[str, Holding] = {}
        self._notes: dict[str, dict[str, str]] = {}
        for holding, where, wanted in holdings:
            for each in wanted:
                self._holdings[each.request.key] = holding
                self._notes[each.request.key] = {"ledger": where, "team": each.team, "key": each.request.key}
        self.sizes: dict[str, dict[str, Any]] = {}
        """Fields that determine a job's price, by submission key, for the history of this machine."""

    def submit(self, backend: "Backend", request: "Request") -> "JobRef":
        holding = self._holdings.get(request.key)
        return holding.send(backend, request) if holding else backend.submit(request)

    def note(self, request: "Request") -> dict[str, str] | None:
        """Return the place of the job's reservation, for the history of this machine."""
        return self._notes.get(request.key)


@contextmanager
def reserve(jobs: "Sequence[tuple[Job, Item]]", known: "Targets", reporter: "Reporter") -> Generator[Submitter]:
    """Release what was not sent. Raises OverLimit where there is no room."""
    named = {request.target: _of_target(known, request.target) for _, (_, request) in jobs}
    if not any(named.values()):
        yield Submitter()
        return
    from .reserve import hold_needs, needs

    with hold_needs(needs(jobs, named, known, reporter), known, reporter) as holdings:
        yield Submitter(holdings)


@contextmanager
def reserve_retry(
    ref: "JobRef", request: "Request", reporter: "Reporter", tasks: int | None = None
) -> Generator[Submitter]:
    """Reserve as much as the first job did, or the share of its `tasks` that run again. Raises OverLimit if unknown."""
    try:
        known = known_targets(reporter)
    except JobsError as error:
        reporter.say(f"no targets, so no allowance is looked for: {error.message}")
        yield Submitter()
        return
    allowances = _of_target(known, request.target)
    if allowances is None:
        if request.target not in known.entries:
            reporter.say(f"target {request.target} is not among the targets here, so no allowance is looked for")
        yield Submitter()
        return

    from .reserve import hold_needs, need_of_retry

    with hold_needs(need_of_retry(ref, request, allowances, tasks), known, reporter) as holdings:
        yield Submitter(holdings)


def settle_ended_jobs(statuses: "Iterable[Status]", say: Callable[[str], None] = say) -> None:
    """Settle what this machine submitted. Report errors and raise none: others, or `spend settle`, settle the rest."""
    ended = {str(status.ref): status for status in statuses if status.phase.ended}
    if not ended:
        return
    notes = {str(entry["ref"]): entry["spend"] for entry in history.recent() if entry.get("spend")}
    for where in {notes[ref]["ledger"]: None for ref in ended if ref in notes}:
        here = {ref: notes[ref] for ref in ended if ref in notes and notes[ref]["ledger"] == where}
        from .settlement import settle_from_history

        settle_from_history(where, here, ended, say)


def _of_target(known: "Targets", name: str) -> "Allowances | None":
    entry = known.entries.get(name)
    return getattr(entry.target, "allowances", None) if entry else None
