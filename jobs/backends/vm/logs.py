"""Output of a job's machines, from Cloud Logging: each line once, in order, however late Logging shows it. A host
numbers its lines in their insertId, so each host is read on from its last line before a gap, and its result says where
its lines end. The lines of all hosts come with one query (see google_logging.py)."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush

from accel.clouds.google.api import Google
from accel.diagnostics.errors import BadInput
from accel.json_values import object_at

from ..base import JobRef, LogLine
from ..google_logging import Entry, follow, list_entries, newest
from ..late_lines import WriterEnd
from . import labels as marks
from .record import ENDED, GONE, Attempt, Record, Result

BOOT_LINES = 10**9
"""Step of the line numbers: a machine that boots again continues with the next multiple."""
ANY = -1
GAP_S = 30.0
"""Time after which a missing line is no longer awaited: the machine could not write it."""
DRAIN_S = 30.0
"""Time after the end of an attempt in which its last lines may still arrive, if their number is unknown."""
MOST_CLAUSES = 150
"""Most clauses of a query, whose text has at most 20,000 characters. Source:
https://docs.cloud.google.com/logging/quotas"""
NEAR = timedelta(seconds=10)
"""Largest distance between the last lines of hosts that share a clause."""
SKEW = timedelta(days=1)
"""Largest lead of the clock of the client that planned an attempt over its machines' clocks."""


@dataclass
class _Host:
    attempt: int
    host: int
    since: datetime
    """Time of the last returned line."""
    next: int = 0
    """Number of the next line. ANY: that of the first line to arrive."""
    early: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    """Lines behind a gap by number: time and text."""
    order: list[int] = field(default_factory=list[int])
    """Numbers of those lines, as a heap."""
    gap_since: float | None = None

    def take(self, number: int, at: str, text: str) -> Iterator[tuple[datetime, str]]:
        """Yield a line, and those that waited for it; nothing if it is known, or has to wait itself."""
        if number < self.next or number in self.early:
            return
        self.early[number] = (at, text)
        heappush(self.order, number)
        yield from self._ready()

    def _ready(self) -> Iterator[tuple[datetime, str]]:
        while self.order:
            number = self.order[0]
            # The first line after a boot needs no predecessor.
            if self.next not in (number, ANY) and number % BOOT_LINES:
                self.gap_since = self.gap_since or time.monotonic()
                return
            at, text = self.early.pop(heappop(self.order))
            self.since, self.next, self.gap_since = datetime.fromisoformat(at), number + 1, None
            yield self.since, text

    def give_up(self, patience_s: float) -> Iterator[tuple[datetime, str]]:
        """Yield the lines behind a gap that has lasted for longer."""
        while self.order and self.gap_since is not None and time.monotonic() - self.gap_since >= patience_s:
            self.next = self.order[0]
            yield from self._ready()


@dataclass
class _Reader:
    google: Google
    record: Record
    host: int | None
    hosts: dict[tuple[int, int], _Host] = field(default_factory=dict[tuple[int, int], _Host])
    ended: dict[int, WriterEnd] = field(default_factory=dict[int, WriterEnd])
    """End of each attempt, as far as it is known."""
    begun: float = field(default_factory=time.monotonic)
    """Time when the last complete read began, on the monotonic clock, or earlier."""
    unread: set[int] = field(default_factory=set[int])
    """Attempts that were seen to have ended since the last complete read."""
    whole: Mapping[int, int] = field(default_factory=dict[int, int])
    """Number of lines of the last attempt, by host."""

    def update(self, record: Record, results: Mapping[int, Result]) -> None:
        self.record = record
        for attempt in record.attempts:
            for host in range(record.hosts) if self.host is None else [self.host]:
                key = (attempt.number, host)
                self.hosts.setdefault(key, _Host(*key, since=datetime.fromisoformat(attempt.planned) - SKEW))
            if attempt.state in (ENDED, GONE) or (attempt is record.last and len(results) == record.hosts):
                self._end(attempt)
        self.whole = {host: result.lines for host, result in results.items() if result.lines is not None}

    def _end(self, attempt: Attempt) -> None:
        if attempt.number not in self.ended:
            stopped = datetime.fromisoformat(attempt.ended) if attempt.ended else None
            self.ended[attempt.number] = WriterEnd(stopped, DRAIN_S)
            self.unread.add(attempt.number)

    def open(self) -> list[_Host]:
        """Return the hosts whose lines may not all have been read."""
        return [host for host in self.hosts.values() if not self._done(host)]

    def _done(self, host: _Host) -> bool:
        ended = self.ended.get(host.attempt)
        if ended is None or host.attempt in self.unread:
            return False
        whole = self.whole.get(host.host) if host.attempt == self.record.last.number else None
        return (whole is not None and host.next >= whole) or ended.is_whole(self.begun)

    def read(self) -> Iterator[LogLine]:
        """Yield the new lines of every open host, in Logging's order of time."""
        hosts = self.open()
        if not hosts:
            return
        begun = time.monotonic()
        for entry in list_entries(self.google, str(self.record.body["project"]), self._query(hosts)):
            if (numbered := self._numbered(entry)) is not None:
                key, number = numbered
                text = str(entry.get("textPayload", ""))
                lines = self.hosts[key].take(number, str(entry.get("timestamp")), text)
                yield from (self._line(key, at, said) for at, said in lines)
        self.unread.clear()
        self.begun = begun

    def newest(self, count: int) -> list[LogLine]:
        """Return the last lines so far. From then on, `read` yields the lines after them."""
        if not (hosts := self.open()):
            return []
        found = newest(self.google, str(self.record.body["project"]), self._query(hosts), count)
        if not found:
            return []
        oldest = datetime.fromisoformat(str(found[0].get("timestamp")))
        for host in hosts:
            host.since, host.next = max(host.since, oldest), ANY
        shown: list[LogLine] = []
        for entry in found:
            if (numbered := self._numbered(entry)) is not None:
                key, number = numbered
                host, at = self.hosts[key], datetime.fromisoformat(str(entry.get("timestamp")))
                host.since, host.next = at, max(host.next, number + 1)
                shown.append(self._line(key, at, str(entry.get("textPayload", ""))))
        return shown

    def _query(self, hosts: list[_Host]) -> str:
        query = [f'logName="projects/{self.record.body["project"]}/logs/{marks.LOG}"']
        query.append(f'labels."{marks.JOB}"="{self.record.name}"')
        if self.host is not None:
            query.append(f'labels."{marks.HOST}"="{self.host}"')
        return " AND ".join([*query, _since(hosts)])

    def _numbered(self, entry: Entry) -> tuple[tuple[int, int], int] | None:
        """Return attempt and host of an entry, and the number of its line; None for an entry of no known host."""
        labels = object_at(entry, "labels")
        key = (int(labels.get(marks.ATTEMPT, 0)), int(labels.get(marks.HOST, 0)))
        number = str(entry.get("insertId")).rpartition("-")[2]
        return (key, int(number)) if key in self.hosts and number.isdigit() else None

    def late(self, patience_s: float) -> Iterator[LogLine]:
        for key, host in self.hosts.items():
            yield from (self._line(key, at, text) for at, text in host.give_up(patience_s))

    def _line(self, key: tuple[int, int], at: datetime, text: str) -> LogLine:
        attempt, host = key
        place = f"node {host}" if self.record.hosts > 1 and self.host is None else ""
        again = f"attempt {attempt}" if len(self.record.attempts) > 1 else ""
        return LogLine(at, text, f"{place} {again}".strip())


def _since(hosts: list[_Host]) -> str:
    """Return the clauses for the lines of these hosts from their last ones on, including some known ones. A silent host
    has a clause of its own, so that the others are not read again and again for its sake."""
    newest = max(host.since for host in hosts)
    near = [host.since for host in hosts if newest - host.since <= NEAR]
    quiet = [host for host in hosts if newest - host.since > NEAR]
    if len(quiet) >= MOST_CLAUSES:
        return f'timestamp>="{min(host.since for host in hosts).isoformat()}"'
    clauses = [f'timestamp>="{min(near).isoformat()}"', *(_own(host) for host in quiet)]
    return f"({' OR '.join(clauses)})"


def _own(host: _Host) -> str:
    where = f'labels."{marks.ATTEMPT}"="{host.attempt}" AND labels."{marks.HOST}"="{host.host}"'
    return f'({where} AND timestamp>="{host.since.isoformat()}")'


def logs(
    google: Google,
    ref: JobRef,
    look: Callable[[], tuple[Record, Mapping[int, Result], bool]],
    *,
    host: int | None,
    follow: bool,
    tail: int | None = None,
) -> Iterator[LogLine]:
    """Yield the lines of all hosts side by side, or of one; with `tail` only the last ones so far. `look` returns the
    record, the results of its last attempt, and whether the job has ended. Raise NotFound, and BadInput for a host that
    the job does not have."""
    record, results, _ = look()
    if host is not None and not 0 <= host < record.hosts:
        raise BadInput(f"node: {ref} has nodes 0 to {record.hosts - 1}, not {host}")
    reader = _Reader(google, record, host)
    reader.update(record, results)
    if not follow:
        return _once(reader) if tail is None else iter(reader.newest(tail))
    return _followed(reader, look, tail)


def _once(reader: _Reader) -> Iterator[LogLine]:
    yield from reader.read()
    yield from reader.late(0)


def _followed(
    reader: _Reader, look: Callable[[], tuple[Record, Mapping[int, Result], bool]], tail: int | None
) -> Iterator[LogLine]:
    def read() -> Iterator[LogLine]:
        nonlocal tail
        if tail is not None:
            newest, tail = reader.newest(tail), None
            yield from newest
        yield from reader.read()
        yield from reader.late(GAP_S)

    def over() -> bool:
        record, results, ended = look()
        reader.update(record, results)
        return ended and not reader.open()

    yield from follow(reader.google.timing, read, over)
    yield from reader.late(0)
