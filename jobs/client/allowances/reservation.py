"""Reservations of money for jobs, the balance of a team and month, and the protocol of ledgers. As with claims, a write
takes effect only while its conditions hold, and does not report whether it did: a client may send it twice, and a proxy
may answer for the service. Writers read again; only that result counts. A write changes reservations and their balance
together, or nothing."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple, Protocol

MICRO = 1_000_000
"""Micro-USD in a USD. Amounts are whole numbers, so that sums are exact."""
AT_ONCE = 90
"""Reservations of one write: with its balance they are fewer than the 100 actions of a DynamoDB transaction. Source:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html"""


@dataclass(frozen=True)
class Terms:
    """What a job may cost, and the values that settle it."""

    usd: int
    """Micro-USD in the worst case."""
    usd_hour: int
    """Micro-USD of one machine per hour, which settles the job."""
    machines: int
    """Machines of all tasks together."""
    tasks: int
    attempts: int
    timeout_s: int


@dataclass(frozen=True, kw_only=True)
class Hold(Terms):
    """Reservation for one job. Without a job (`ref`) it is free after its lease; a settled one is what the job has
    cost."""

    key: str
    """The submission key."""
    team: str
    period: str
    """Month that it counts for, such as 2026-11: the one in which it was made."""
    name: str
    """Name of the job on its platform."""
    target: str
    owner: str
    """Random id of the client that will send the job."""
    lease_until: float
    made: float
    known_s: int | None = None
    """Seconds after `made` for which the platform surely knows a job, if there is one; None: always."""
    ref: str | None = None
    settled: int | None = None
    why: str = ""
    """Explanation of the settlement, where that is not by the job's own times."""
    version: str = ""
    """Version in the ledger, as it was read."""

    @property
    def used(self) -> int:
        return self.usd if self.settled is None else self.settled

    @property
    def open(self) -> bool:
        return self.settled is None


class Balance(NamedTuple):
    """Balance of a team and month, in micro-USD."""

    used: int = 0
    settled: int = 0

    @property
    def reserved(self) -> int:
        return self.used - self.settled


class Change(NamedTuple):
    """A reservation as it was read, and as it is to be; None deletes it."""

    seen: Hold
    new: Hold | None


class Ledger(Protocol):
    """Store of reservations and balances. Calls raise NoCredentials, CloudRefused, NotFound, and CloudSilent where it
    is not known whether a write was made."""

    @property
    def shared(self) -> bool:
        """Tell whether all who submit see the same ledger."""
        ...

    def now(self) -> float:
        """Return Unix seconds, by the ledger's clock, at this thread's last read."""
        ...

    def balance(self, team: str, period: str) -> Balance:
        """Return the current balance, never an older one."""
        ...

    def read(self, team: str, keys: Sequence[str]) -> dict[str, Hold]:
        """Return the current reservations of these keys."""
        ...

    def holds(self, team: str) -> list[Hold]: ...

    def add(self, holds: Sequence[Hold], limit: int | None) -> None:
        """Write the reservations if all keys are new and the balance stays within the limit; None: whatever the
        balance. All are of one team and period, at most AT_ONCE."""
        ...

    def change(self, changes: Sequence[Change]) -> None:
        """Change the reservations if each is still as it was read. All are of one team and period, at most AT_ONCE."""
        ...


def together(holds: Iterable[Hold]) -> list[list[Hold]]:
    """Group the reservations into those that one write may change."""
    groups: dict[tuple[str, str], list[Hold]] = {}
    for hold in holds:
        groups.setdefault((hold.team, hold.period), []).append(hold)
    return [group[start : start + AT_ONCE] for group in groups.values() for start in range(0, len(group), AT_ONCE)]


def balance_of(holds: Iterable[Hold]) -> Balance:
    used = settled = 0
    for hold in holds:
        used += hold.used
        settled += hold.settled or 0
    return Balance(used, settled)


def balance_change(changes: Iterable[Change]) -> Balance:
    before, after = balance_of(each.seen for each in changes), balance_of(each.new for each in changes if each.new)
    return Balance(after.used - before.used, after.settled - before.settled)


def serialize_hold(hold: Hold) -> str:
    return json.dumps(asdict(replace(hold, version="")), sort_keys=True)


def parse_hold(text: str, version: str) -> Hold:
    """Drop fields that a newer client added."""
    values: Mapping[str, object] = json.loads(text)
    known = {name: values[name] for name in Hold.__dataclass_fields__ if name in values}
    return Hold(**{**known, "version": version})  # pyright: ignore[reportArgumentType]
