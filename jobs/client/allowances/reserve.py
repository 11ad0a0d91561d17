"""Submission under an allowance: the highest cost of jobs is reserved before they are sent.

The order is:

1. hold    Write the reservations of all jobs of a command with their balance, under a lease, or none of them. Where
           there is no room, look once for reservations of jobs that have ended or were never made.
2. send    Submit the job.
3. record  Write its reference into the reservation, which is the job's from then on. A definite refusal releases the
           reservation; so does an end before the job was sent.

A client that dies leaves reservations with a lease. The same command under the same key continues with them; after the
lease anybody looks for the job by its key (settlement.py). A key reserves once: another client with the key takes the
reservation over before it sends, and the first client can then no longer release it. One gap is left: a client that is
suspended for longer than its lease before it sends makes a job whose reservation may be gone; the reservation is then
written again, whatever the balance.
"""

import logging
import threading
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from accel.clouds.backoff import back_off
from accel.contract.allowances import Allowances
from accel.diagnostics.errors import BadInput, CloudSilent, JobsError, NotFound, NotSent, OverLimit, Throttled

from ...backends.base import Backend, JobRef, Request
from ...backends.claims.submit import NOT_MADE
from ..cost import of
from .find_job import retention_s
from .ledgers import address, ledger_at
from .price import Price, fitting, price, team_of, usd
from .reservation import AT_ONCE, MICRO, Balance, Change, Hold, Ledger, together
from .settlement import settle_team

if TYPE_CHECKING:
    from accel.console.reporter import Reporter

    from ...model.job import Job
    from ..bulk import Item
    from ..cost_parts import JobCost
    from ..targets import Targets

LEASE_S = 3600.0
"""Seconds for which a reservation without a job is its client's, beside the time that its pace needs."""
TURNS = 40
"""Attempts to write reservations while others write the same balance; the pauses add up to a minute."""
LONGEST_PAUSE_S = 3.0
UNANSWERED = 3

log = logging.getLogger("accel.jobs.spend")


@dataclass(frozen=True)
class ReservationRequest:
    """A job that needs a reservation."""

    request: Request
    team: str
    price: Price
    known_s: int | None = None


class Holding:
    """The reservations of one command, all in one ledger. `sweep` settles what can be of a team, and is called once
    where there is no room. At its end the context releases the reservations of jobs that were not sent."""

    def __init__(
        self,
        ledger: Ledger,
        allowances: Allowances,
        wanted: Sequence[ReservationRequest],
        *,
        sweep: Callable[[str], None] = lambda team: None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._ledger, self._allowances, self._sweep, self._say = ledger, allowances, sweep, say
        self._wanted = {each.request.key: each for each in wanted}
        self._owner = uuid.uuid4().hex
        self._mine: dict[str, Hold] = {}
        """Reservations that this command has written or taken over, by key, as they were read."""
        self._taken: set[str] = set()
        """Keys of those that it may have taken over."""
        self._fresh: set[str] = set()
        """Keys of those that it has written, of jobs that have not been sent."""
        self._others: dict[str, Hold] = {}
        """Reservations that have a job, or are settled."""
        self._lock = threading.Lock()
        self._ended = False

    def __enter__(self) -> Self:
        teams = dict.fromkeys(each.team for each in self._wanted.values())
        try:
            for team in teams:
                self._hold(team, [each for each in self._wanted.values() if each.team == team])
        except BaseException:
            self._take_back()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._take_back()

    def send(self, backend: Backend, request: Request) -> JobRef:
        """Submit under the job's reservation; several threads may call this."""
        with self._lock:
            if self._ended:
                raise NotSent(f"{request.name}: its hold has been taken back")
            fresh = request.key in self._fresh
            self._fresh.discard(request.key)
        other = self._others.get(request.key)
        if other is not None and not other.open:
            _must_be_known(backend, other)
        try:
            log.debug("sending")
            ref = backend.submit(request)
        except (*NOT_MADE, NotSent):
            if fresh:
                self._release([request.key])
            raise
        log.debug("sent")
        if other is None:
            self._record(request.key, str(ref))
        return ref

    def _hold(self, team: str, wanted: list[ReservationRequest]) -> None:
        """Reserve for all jobs of a team, or for none."""
        found = self._known(team, wanted)
        limit = round(self._allowances.teams[team].usd * MICRO)
        missing = [each for each in wanted if each.request.key not in found]
        if missing:
            self._room(team, missing, limit)
        for start in range(0, len(wanted), AT_ONCE):
            self._secure(team, wanted[start : start + AT_ONCE], found, limit)

    def _secure(self, team: str, some: list[ReservationRequest], found: Mapping[str, Hold], limit: int) -> None:
        """Write until each of at most AT_ONCE jobs has a reservation that is this command's, or that has a job."""
        unanswered = 0
        for turn in range(TURNS):
            missing = [each for each in some if each.request.key not in found]
            theirs = [hold for each in some if (hold := found.get(each.request.key)) and self._without(hold)]
            if not missing and not theirs:
                return
            if turn:
                back_off(min(0.05 * 2**turn, LONGEST_PAUSE_S))
                if missing:
                    self._room(team, missing, limit)
            try:
                if missing:
                    log.debug("holding")
                    self._ledger.add([self._made(each) for each in missing], limit)
                    log.debug("held")
                if theirs:
                    self._take_over(theirs)
            except CloudSilent as error:
                unanswered += 1
                if unanswered > UNANSWERED:
                    raise NotSent(f"{error.message}; nothing was submitted", error.hint) from error
            found = self._known(team, some)
        raise Throttled(f"the ledger of team {team} is busy; nothing was submitted", "run the same command again")

    def _room(self, team: str, missing: list[ReservationRequest], limit: int) -> None:
        """Settle what can be where there is no room for all. Raises OverLimit where there still is none."""
        for last in (False, True):
            period = self._period()
            balance = self._ledger.balance(team, period)
            if balance.used + sum(each.price.usd for each in missing) <= limit:
                return
            # The same command elsewhere may have taken the room.
            found = self._known(team, missing)
            missing = [each for each in missing if each.request.key not in found]
            if not missing:
                return
            if last:
                raise self._refusal(team, period, missing, balance, limit)
            self._sweep(team)

    def _known(self, team: str, wanted: Sequence[ReservationRequest]) -> dict[str, Hold]:
        """Raise BadInput for a key that another job has."""
        found = self._ledger.read(team, [each.request.key for each in wanted])
        for key, hold in found.items():
            if hold.ref is not None or not hold.open:
                self._others[key] = hold
            elif hold.owner == self._owner:
                self._mine[key] = hold
                if key not in self._taken:
                    self._fresh.add(key)
            elif hold.usd != self._wanted[key].price.usd:
                raise BadInput(
                    f"key: {usd(hold.usd)} are held under it for {hold.name}, which is another request",
                    "submit the job as it was then, or use another --key",
                )
        return found

    def _without(self, hold: Hold) -> bool:
        """Tell whether it is another client's, without a job."""
        return hold.open and hold.ref is None and hold.owner != self._owner

    def _take_over(self, holds: list[Hold]) -> None:
        """Become the owner, so that the first client cannot release the reservations."""
        self._taken.update(hold.key for hold in holds)
        until = self._ledger.now() + self._lease()
        for some in together(holds):
            log.debug("taking over")
            new = (replace(hold, owner=self._owner, lease_until=until) for hold in some)
            self._ledger.change([Change(*pair) for pair in zip(some, new, strict=True)])
            log.debug("taken over")

    def _period(self) -> str:
        return f"{datetime.fromtimestamp(self._ledger.now(), UTC):%Y-%m}"

    def _lease(self) -> float:
        """Return the seconds of a lease: at least one job a second is sent."""
        return LEASE_S + len(self._wanted)

    def _made(self, each: ReservationRequest) -> Hold:
        price, request, now = each.price, each.request, self._ledger.now()
        return Hold(
            key=request.key,
            team=each.team,
            period=self._period(),
            usd=price.usd,
            usd_hour=price.usd_hour,
            machines=price.machines,
            tasks=price.tasks,
            attempts=price.attempts,
            timeout_s=price.timeout_s,
            name=request.name,
            target=request.target,
            owner=self._owner,
            lease_until=now + self._lease(),
            made=now,
            known_s=each.known_s,
        )

    def _refusal(
        self, team: str, period: str, missing: list[ReservationRequest], balance: Balance, limit: int
    ) -> OverLimit:
        need, free = sum(each.price.usd for each in missing), limit - balance.used
        what = missing[0].request.name if len(missing) == 1 else f"these {len(missing)} jobs"
        said = (
            f"team {team} has {usd(max(free, 0))} left of {usd(limit)} for {period} "
            f"({usd(balance.reserved)} held, {usd(balance.settled)} settled), and {what} may cost {usd(need)}"
        )
        fits = fitting([each.price for each in missing], free)
        return OverLimit(said, f"{fits}; `accel-jobs spend --jobs` shows what is held")

    def _record(self, key: str, ref: str) -> None:
        """Raise nothing: the job exists, and the key finds a reservation without a reference."""
        team, hold = self._wanted[key].team, self._mine.get(key)
        why = "others write it just now"
        try:
            for _ in range(UNANSWERED):
                log.debug("recording")
                try:
                    if hold is not None:
                        self._ledger.change([Change(hold, replace(hold, ref=ref))])
                    else:
                        self._ledger.add([replace(self._made(self._wanted[key]), ref=ref)], None)
                except CloudSilent as error:
                    why = error.message
                hold = self._ledger.read(team, [key]).get(key)
                if hold is not None and (hold.ref is not None or not hold.open):
                    log.debug("recorded")
                    return
        except JobsError as error:
            why = error.message
        self._say(f"{ref}: its hold could not be completed ({why}); `accel-jobs spend settle` will")

    def _take_back(self) -> None:
        with self._lock:
            self._ended = True
            keys = sorted(self._fresh)
            self._fresh.clear()
        self._release(keys)

    def _release(self, keys: Sequence[str]) -> None:
        """Release those that are still as this command wrote them; the others belong to somebody else by now."""
        try:
            for holds in together(self._mine[key] for key in keys):
                self._ledger.change([Change(hold, None) for hold in holds])
                # One that belongs to somebody else keeps all of them, and so does a busy balance; so try each alone.
                left = self._ledger.read(holds[0].team, [hold.key for hold in holds])
                for hold in holds:
                    if left.get(hold.key) == hold:
                        self._ledger.change([Change(hold, None)])
        except JobsError as error:
            self._say(f"{len(keys)} holds end with their lease of {self._lease() / 3600:.1f} h: {error.message}")


def _must_be_known(backend: Backend, hold: Hold) -> None:
    """Raise BadInput for an ended job that its platform forgot: a submit would make one without a reservation."""
    if hold.ref is not None:
        with suppress(NotFound):
            backend.status(JobRef.parse(hold.ref))
            return
    raise BadInput(f"key: it was used for {hold.name}, which has ended and is not known any more", "use another --key")


def needs(
    jobs: "Sequence[tuple[Job, Item]]", named: "Mapping[str, Allowances | None]", known: "Targets", reporter: "Reporter"
) -> "dict[str, tuple[Allowances, list[ReservationRequest]]]":
    """Return the reservations to make, by their ledger's address."""
    groups: dict[str, tuple[Allowances, list[ReservationRequest]]] = {}
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
            reporter.warn(warning)
        groups.setdefault(address(allowances), (allowances, []))[1].append(
            ReservationRequest(request, team, found, retention_s(job, request.kind))
        )
    return groups


def need_of_retry(
    ref: JobRef, request: Request, allowances: Allowances, tasks: int | None
) -> "dict[str, tuple[Allowances, list[ReservationRequest]]]":
    """Derive it from the first job's reservation. Raises OverLimit without one."""
    where = address(allowances)
    first = _hold_of(ledger_at(where), sorted(allowances.teams), str(ref))
    if first is None:
        raise OverLimit(
            f"{ref}: its target has allowances, and what it may cost is not in their ledger", "submit its job file"
        )
    count = first.tasks if tasks is None else tasks
    usd, machines = (-(-whole * count // first.tasks) for whole in (first.usd, first.machines))
    again = Price(usd, first.usd_hour, machines, count, first.attempts, first.timeout_s)
    return {where: (allowances, [ReservationRequest(request, first.team, again, first.known_s)])}


@contextmanager
def hold_needs(
    groups: "Mapping[str, tuple[Allowances, list[ReservationRequest]]]", known: "Targets", reporter: "Reporter"
) -> "Generator[list[tuple[Holding, str, list[ReservationRequest]]]]":
    """Yield each holding with its ledger's address and its requests. Raises OverLimit where there is no room."""
    holdings: list[tuple[Holding, str, list[ReservationRequest]]] = []
    with ExitStack() as stack:
        for where, (allowances, wanted) in groups.items():
            ledger = ledger_at(where)
            sweep = partial(_sweep, ledger, known, reporter.say)
            holding = stack.enter_context(Holding(ledger, allowances, wanted, sweep=sweep, say=reporter.say))
            holdings.append((holding, where, wanted))
        yield holdings


def _sweep(ledger: "Ledger", known: "Targets", say: Callable[[str], None], team: str) -> None:
    done = settle_team(ledger, team, {name: each.target for name, each in known.entries.items() if each.target})
    for line in done.unseen:
        say(line)


def _hold_of(ledger: "Ledger", teams: Sequence[str], ref: str) -> "Hold | None":
    return next((hold for team in teams for hold in ledger.holds(team) if hold.ref == ref), None)
