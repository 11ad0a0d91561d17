"""A hold of money for one job, the balance of a team and month, and where both are kept.

As with claims, a write happens only while its conditions hold, and says nothing of whether it did: a client may send it
twice, and a proxy may answer for the service. Whoever writes reads again; what is read is the truth. A write changes
holds and their balance together, or nothing.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple, Protocol

MICRO = 1_000_000
"""Money is whole millionths of a USD, so that sums are exact."""
AT_ONCE = 90
"""Holds of one write: with its balance they are fewer than the 100 actions of a DynamoDB transaction. Source:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html"""


@dataclass(frozen=True)
class Hold:
    """What one job may cost. Without a job (`ref`) it is free after its lease; settled, it is what the job has cost."""

    key: str
    """The submission key."""
    team: str
    period: str
    """The month that it counts for, such as 2026-11: that in which it was held."""
    usd: int
    """Micro-USD: the worst case."""
    usd_hour: int
    """Micro-USD of one machine, by which the job is settled."""
    machines: int
    """Of all tasks together."""
    tasks: int
    attempts: int
    timeout_s: int
    name: str
    """Of the job on its platform."""
    target: str
    owner: str
    """A random id of the client that will send the job."""
    lease_until: float
    made: float
    known_s: int | None = None
    """For how long after `made` the platform surely knows of a job, if there is one; None: always."""
    ref: str | None = None
    settled: int | None = None
    why: str = ""
    """How it was settled, where that is not by the job's own times."""
    version: str = ""
    """The ledger's own, as it was read."""

    @property
    def used(self) -> int:
        """What it takes of the allowance."""
        return self.usd if self.settled is None else self.settled

    @property
    def open(self) -> bool:
        """Whether it is not settled yet."""
        return self.settled is None


class Balance(NamedTuple):
    """Of a team and month, in micro-USD."""

    used: int = 0
    settled: int = 0

    @property
    def reserved(self) -> int:
        """For jobs that have not been settled."""
        return self.used - self.settled


class Change(NamedTuple):
    """A hold as it was read, and as it shall be; None: it goes."""

    seen: Hold
    new: Hold | None


class Ledger(Protocol):
    """Where holds and balances are kept. Calls raise NoCredentials, CloudRefused, NotFound, and CloudSilent where it is
    not known whether a write was made."""

    @property
    def shared(self) -> bool:
        """Whether all who submit see the same."""
        ...

    def now(self) -> float:
        """Unix seconds, by the ledger's clock, at this thread's last read."""
        ...

    def balance(self, team: str, period: str) -> Balance:
        """As it is now, never an older one."""
        ...

    def read(self, team: str, keys: Sequence[str]) -> dict[str, Hold]:
        """The holds of these keys, as they are now."""
        ...

    def holds(self, team: str) -> list[Hold]:
        """Every hold of a team."""
        ...

    def add(self, holds: Sequence[Hold], limit: int | None) -> None:
        """Writes the holds, of one team and period and at most AT_ONCE, if none of their keys is there and their
        balance stays within the limit. None: whatever the balance."""
        ...

    def change(self, changes: Sequence[Change]) -> None:
        """Changes holds, of one team and period and at most AT_ONCE, if each still is as it was read."""
        ...


def together(holds: Iterable[Hold]) -> list[list[Hold]]:
    """The holds, as those that one write may change."""
    groups: dict[tuple[str, str], list[Hold]] = {}
    for hold in holds:
        groups.setdefault((hold.team, hold.period), []).append(hold)
    return [group[start : start + AT_ONCE] for group in groups.values() for start in range(0, len(group), AT_ONCE)]


def balance_of(holds: Iterable[Hold]) -> Balance:
    """What holds are to their balance."""
    used = settled = 0
    for hold in holds:
        used += hold.used
        settled += hold.settled or 0
    return Balance(used, settled)


def balance_change(changes: Iterable[Change]) -> Balance:
    """What changes are to their balance."""
    before, after = balance_of(each.seen for each in changes), balance_of(each.new for each in changes if each.new)
    return Balance(after.used - before.used, after.settled - before.settled)


def serialize_hold(hold: Hold) -> str:
    """The hold as text."""
    return json.dumps(asdict(replace(hold, version="")), sort_keys=True)


def parse_hold(text: str, version: str) -> Hold:
    """The hold of a text; what a newer client added is left out."""
    values: Mapping[str, object] = json.loads(text)
    known = {name: values[name] for name in Hold.__dataclass_fields__ if name in values}
    return Hold(**{**known, "version": version})  # pyright: ignore[reportArgumentType]
