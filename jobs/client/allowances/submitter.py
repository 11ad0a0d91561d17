"""What the verbs have to do with allowances: holds before jobs are sent, and their settlement once they have ended.

Without allowances nothing of jobs.client.allowances is imported.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from accel.console.errors import say
from accel.diagnostics.errors import JobsError, OverLimit

from .. import history
from .ledgers import address, ledger_at

if TYPE_CHECKING:
    from accel.console.reporter import Voice
    from accel.contract.allowances import Allowances

    from ...backends.base import Backend, JobRef, Request, Status
    from ...model.job import Job
    from ..bulk import Item
    from ..cost_parts import JobCost
    from ..targets import Targets
    from .reservation import Hold, Ledger
    from .reserve import Holding, Wanted


class Submitter:
    """Submits requests, each under its reservation if it has one."""

    def __init__(self) -> None:
        self._holdings: dict[str, Holding] = {}
        self._notes: dict[str, dict[str, str]] = {}
        self.sizes: dict[str, dict[str, Any]] = {}
        """By submission key, for the history of this machine: by what jobs are priced."""

    def submit(self, backend: "Backend", request: "Request") -> "JobRef":
        """As Backend.submit."""
        holding = self._holdings.get(request.key)
        return holding.send(backend, request) if holding else backend.submit(request)

    def note(self, request: "Request") -> dict[str, str] | None:
        """For the history of this machine: by what the job's hold is found."""
        return self._notes.get(request.key)

    def add(self, holding: "Holding", where: str, wanted: "Iterable[Wanted]") -> None:
        """Jobs that are held for."""
        for each in wanted:
            self._holdings[each.request.key] = holding
            self._notes[each.request.key] = {"ledger": where, "team": each.team, "key": each.request.key}


@contextmanager
def reserve(jobs: "Sequence[tuple[Job, Item]]", known: "Targets", voice: "Voice") -> Generator[Submitter]:
    """Holds what the jobs may cost, and takes back what was not sent. Raises OverLimit where there is no room."""
    named = {request.target: _of_target(known, request.target) for _, (_, request) in jobs}
    groups = _groups(jobs, named, known, voice) if any(named.values()) else {}
    with _entered(groups, known, voice) as submitter:
        yield submitter


def _groups(
    jobs: "Sequence[tuple[Job, Item]]", named: "Mapping[str, Allowances | None]", known: "Targets", voice: "Voice"
) -> "dict[str, tuple[Allowances, list[Wanted]]]":
    """By ledger, what is to be held there."""
    from ..cost import of
    from .find_job import known_s
    from .price import price, team_of
    from .reserve import Wanted

    groups: dict[str, tuple[Allowances, list[Wanted]]] = {}
    costs: dict[str, JobCost] = {}
    for job, (_, request) in jobs:
        if (allowances := named[request.target]) is None:
            continue
        team = team_of(job, allowances)
        size = f"{request.target} {job.model_dump_json(exclude={'name', 'env', 'command', 'labels'})}"
        if size not in costs:
            costs[size] = of(job, *known.choose(request.target))
        found = price(job, costs[size], team, allowances.teams[team])
        for warning in found.warnings:
            voice.warn(warning)
        groups.setdefault(address(allowances), (allowances, []))[1].append(
            Wanted(request, team, found, known_s(job, request.kind))
        )
    return groups


@contextmanager
def reserve_retry(ref: "JobRef", request: "Request", voice: "Voice", tasks: int | None = None) -> Generator[Submitter]:
    """As reserve, for a job that is run once more: it may cost what the first one's hold says, or where only some of
    its `tasks` run, their part of that.

    Raises OverLimit where the ledger does not know the first one.
    """
    from ..resolve import targets

    try:
        known = targets(voice)
    except JobsError as error:
        voice.say(f"no targets, so no allowance is looked for: {error.message}")
        yield Submitter()
        return
    allowances = _of_target(known, request.target)
    if allowances is None:
        if request.target not in known.entries:
            voice.say(f"target {request.target} is not among the targets here, so no allowance is looked for")
        yield Submitter()
        return

    from .price import Price
    from .reserve import Wanted

    where = address(allowances)
    hold = _hold_of(ledger_at(where), sorted(allowances.teams), str(ref))
    if hold is None:
        raise OverLimit(
            f"{ref}: its target has allowances, and what it may cost is not in their ledger", "submit its job file"
        )
    count = hold.tasks if tasks is None else tasks
    usd, machines = (-(-whole * count // hold.tasks) for whole in (hold.usd, hold.machines))
    again = Price(usd, hold.usd_hour, machines, count, hold.attempts, hold.timeout_s)
    with _entered({where: (allowances, [Wanted(request, hold.team, again, hold.known_s)])}, known, voice) as submitter:
        yield submitter


@contextmanager
def _entered(
    groups: "Mapping[str, tuple[Allowances, list[Wanted]]]", known: "Targets", voice: "Voice"
) -> Generator[Submitter]:
    submitter = Submitter()
    with ExitStack() as stack:
        for where, (allowances, wanted) in groups.items():
            from .reserve import Holding

            ledger = ledger_at(where)
            sweep = partial(_sweep, ledger, known, voice.say)
            holding = stack.enter_context(Holding(ledger, allowances, wanted, sweep=sweep, say=voice.say))
            submitter.add(holding, where, wanted)
        yield submitter


def settle_ended(statuses: "Iterable[Status]", say: Callable[[str], None] = say) -> None:
    """Settles the holds of jobs that were submitted from here and have ended. Says what went wrong, and raises nothing
    for it: somebody else settles them, or `spend settle` does."""
    ended = {str(status.ref): status for status in statuses if status.phase.ended}
    if not ended:
        return
    notes = {str(entry["ref"]): entry["spend"] for entry in history.recent() if entry.get("spend")}
    for where in {notes[ref]["ledger"]: None for ref in ended if ref in notes}:
        here = {ref: notes[ref] for ref in ended if ref in notes and notes[ref]["ledger"] == where}
        _settle(where, here, ended, say)


def _settle(
    where: str, notes: Mapping[str, Mapping[str, str]], ended: "Mapping[str, Status]", say: Callable[[str], None]
) -> None:
    from .settlement import settle

    try:
        ledger = ledger_at(where)
        for team in sorted({note["team"] for note in notes.values()}):
            refs = {note["key"]: ref for ref, note in notes.items() if note["team"] == team}
            for key, hold in ledger.read(team, list(refs)).items():
                if hold.open:
                    settle(ledger, hold, ended[refs[key]])
    except JobsError as error:
        say(f"{len(notes)} holds could not be settled ({error.message}); `accel-jobs spend settle` will")


def _sweep(ledger: "Ledger", known: "Targets", say: Callable[[str], None], team: str) -> None:
    from .settlement import settle_team

    done = settle_team(ledger, team, {name: each.target for name, each in known.entries.items() if each.target})
    for line in done.unseen:
        say(line)


def _of_target(known: "Targets", name: str) -> "Allowances | None":
    entry = known.entries.get(name)
    return getattr(entry.target, "allowances", None) if entry else None


def _hold_of(ledger: "Ledger", teams: Sequence[str], ref: str) -> "Hold | None":
    return next((hold for team in teams for hold in ledger.holds(team) if hold.ref == ref), None)
