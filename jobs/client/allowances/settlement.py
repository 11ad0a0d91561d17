"""Settlement of reservations whose jobs have ended, or were never made."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from accel.clouds.backoff import back_off
from accel.contract.targets import AnyTarget
from accel.diagnostics.errors import JobsError, NotFound

from ...backends.base import Backend, JobRef, Many, Status
from ...backends.registry import of_ref
from .find_job import Finding, find_job
from .ledgers import ledger_at
from .price import WHOLE, bill
from .reservation import Change, Hold, Ledger

TRIES, PAUSE_S = 5, 0.1

log = logging.getLogger("accel.jobs.spend")


@dataclass
class SettlementReport:
    """Result of settling the reservations of a team."""

    settled: list[Hold] = field(default_factory=list[Hold])
    released: list[Hold] = field(default_factory=list[Hold])
    running: int = 0
    """Number of reservations whose jobs still run or are being submitted."""
    unseen: list[str] = field(default_factory=list[str])
    """`<job>: why` of those that could not be read."""

    def note(self, hold: Hold | None) -> None:
        if hold is not None and hold.open:
            self.unseen.append(f"{hold.name}: others write its hold just now")
        elif hold is not None:
            self.settled.append(hold)


def settle_team(
    ledger: Ledger,
    team: str,
    targets: Mapping[str, AnyTarget],
    *,
    backend_of: Callable[[JobRef], Backend] = of_ref,
    find: Finding = find_job,
) -> SettlementReport:
    """Settle or release what can be; jobs of a cloud that cannot be read stay. Raises the ledger's errors."""
    found = SettlementReport()
    holds = [hold for hold in ledger.holds(team) if hold.open]
    now = ledger.now()
    for hold in holds:
        if hold.ref is None:
            _orphan(ledger, hold, now, targets, find, found, backend_of)
    by_scope: dict[tuple[str, str], dict[JobRef, Hold]] = {}
    for hold in holds:
        if hold.ref is not None:
            ref = JobRef.parse(hold.ref)
            by_scope.setdefault((ref.kind, ref.scope), {})[ref] = hold
    for some in by_scope.values():
        _seen(ledger, some, backend_of, found)
    return found


def settle(ledger: Ledger, hold: Hold, status: Status, backend_of: Callable[[JobRef], Backend] = of_ref) -> Hold | None:
    """Settle the reservation of an ended job, once, whoever does so first. Return it as it is now; None: it is gone."""
    amount, why = _bill(hold, status, backend_of)
    return _become(ledger, hold, lambda now: replace(now, ref=now.ref or str(status.ref), settled=amount, why=why))


def _bill(hold: Hold, status: Status, backend_of: Callable[[JobRef], Backend]) -> tuple[int, str]:
    """Read an array of AWS Batch task by task, since it has no times of its own."""
    if hold.tasks == 1 or status.ref.kind != "aws-batch":
        return bill(hold, status)
    backend = backend_of(status.ref)
    assert isinstance(backend, Many)
    refs = [replace(status.ref, id=f"{status.ref.id}:{index}") for index in range(hold.tasks)]
    tasks = backend.statuses(refs)
    if len(tasks) < hold.tasks:
        return hold.usd, f"{WHOLE}AWS Batch does not know all of its tasks any more"
    one = replace(hold, tasks=1, machines=1)
    return min(hold.usd, sum(bill(one, each)[0] for each in tasks.values())), ""


def _seen(
    ledger: Ledger, refs: Mapping[JobRef, Hold], backend_of: Callable[[JobRef], Backend], found: SettlementReport
) -> None:
    """Settle the reservations of jobs that one backend sees."""
    known: dict[JobRef, Status] = {}
    try:
        backend = backend_of(next(iter(refs)))
        if len(refs) > 1 and isinstance(backend, Many):
            known = backend.statuses(list(refs))
    except JobsError as error:
        found.unseen += [f"{ref}: {error.message}" for ref in refs]
        return
    for ref, hold in refs.items():
        try:
            status = known.get(ref) or backend.status(ref)
            if not status.phase.ended:
                found.running += 1
                continue
            now = settle(ledger, hold, status, backend_of)
        except NotFound:
            why = f"{WHOLE}its platform does not know it any more"
            now = _become(ledger, hold, lambda now, why=why: replace(now, settled=now.usd, why=why))
        except JobsError as error:
            found.unseen.append(f"{ref}: {error.message}")
            continue
        found.note(now)


def _orphan(
    ledger: Ledger,
    hold: Hold,
    now: float,
    targets: Mapping[str, AnyTarget],
    find: Finding,
    found: SettlementReport,
    backend_of: Callable[[JobRef], Backend],
) -> None:
    """Handle a reservation without a job. It waits for the end of its lease; then find its job, or release it."""
    if now <= hold.lease_until:
        found.running += 1
        return
    target = targets.get(hold.target)
    if target is None:
        found.unseen.append(f"{hold.name}: its target {hold.target} is not among the targets here")
        return
    try:
        ref = find(hold, target)
        if ref is not None:
            log.debug("found")
            recorded = _become(ledger, hold, lambda one: replace(one, ref=str(ref)))
            if recorded is not None and recorded.open:
                _seen(ledger, {ref: recorded}, backend_of, found)
            return
    except JobsError as error:
        found.unseen.append(f"{hold.name}: {error.message}")
        return
    if hold.known_s is not None and now - hold.made > hold.known_s:
        why = f"{WHOLE}whether it was made is not known any more"
        found.note(_become(ledger, hold, lambda one: replace(one, settled=one.usd, why=why)))
        return
    log.debug("releasing")
    ledger.change([Change(hold, None)])
    if hold.key not in ledger.read(hold.team, [hold.key]):
        found.released.append(hold)


def _become(ledger: Ledger, hold: Hold, change: Callable[[Hold], Hold]) -> Hold | None:
    """Change a reservation once, and return it as it is now. One that is settled meanwhile stays unchanged."""
    seen: Hold | None = hold
    for turn in range(TRIES):
        assert seen is not None
        if turn:
            back_off(PAUSE_S * 2**turn)
        log.debug("settling")
        ledger.change([Change(seen, change(seen))])
        log.debug("settled")
        seen = ledger.read(hold.team, [hold.key]).get(hold.key)
        if seen is None or not seen.open or (seen.ref is not None and change(seen).open):
            return seen
    return seen


def settle_from_history(
    where: str, notes: Mapping[str, Mapping[str, str]], ended: "Mapping[str, Status]", say: Callable[[str], None]
) -> None:
    """Report errors, and raise none."""
    try:
        ledger = ledger_at(where)
        for team in sorted({note["team"] for note in notes.values()}):
            refs = {note["key"]: ref for ref, note in notes.items() if note["team"] == team}
            for key, hold in ledger.read(team, list(refs)).items():
                if hold.open:
                    settle(ledger, hold, ended[refs[key]])
    except JobsError as error:
        say(f"{len(notes)} holds could not be settled ({error.message}); `accel-jobs spend settle` will")
