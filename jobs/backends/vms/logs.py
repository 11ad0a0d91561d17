"""What the machines of a job print, from Cloud Logging: each line once, in order, however late Logging shows it.

A host numbers its lines, and the number is in a line's insertId. So each host is read on from its last line before a
gap, and where its lines end is known from its result. The lines of all hosts come with one query, since a project may
make 60 a minute. Source: https://docs.cloud.google.com/logging/quotas#api-limits
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ...backend import JobRef, LogLine
from ...errors import BadInput, CloudSilent
from ...google import mapping
from ...google_api import Google
from . import marks
from .record import ENDED, GONE, Record, Result

PAGE = 1000
BOOT_LINES = 10**9
"""A machine that boots again goes on with the next multiple of it."""
GAP_S = 30.0
"""A line that is missing for so long is not waited for any more: the machine could not write it."""
DRAIN_S = 30.0
"""How long after the end of an attempt its last lines may still come."""
MOST_CLAUSES = 200
"""Of a query, whose text has at most 20,000 characters."""
LONGEST_PAUSE_S = 8.0


@dataclass
class _Host:
    """The lines of one host in one attempt."""

    attempt: int
    host: int
    since: str
    """Time of the last line that was handed on."""
    next: int = 0
    early: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    """Lines behind a gap, by their numbers: time and text."""
    gap_since: float | None = None

    def take(self, number: int, at: str, text: str) -> Iterator[tuple[str, str]]:
        """A line, and those that waited for it; none where it came before, or has to wait itself."""
        if number < self.next:
            return
        self.early[number] = (at, text)
        yield from self._ready()

    def _ready(self) -> Iterator[tuple[str, str]]:
        while self.early:
            number = self.next if self.next in self.early else self._boot()
            if number is None:
                self.gap_since = self.gap_since or time.monotonic()
                return
            self.since, text = self.early.pop(number)
            self.next, self.gap_since = number + 1, None
            yield self.since, text

    def _boot(self) -> int | None:
        """The first line after a boot needs none before it."""
        first = min(self.early)
        return first if first % BOOT_LINES == 0 else None

    def give_up(self, patience_s: float) -> Iterator[tuple[str, str]]:
        """The lines behind a gap that has been there for longer."""
        while self.early and self.gap_since is not None and time.monotonic() - self.gap_since >= patience_s:
            self.next = min(self.early)
            yield from self._ready()

    def clause(self) -> str:
        """Of a query: this host's lines from the last one on."""
        where = f'labels."{marks.ATTEMPT}"="{self.attempt}" AND labels."{marks.HOST}"="{self.host}"'
        return f'({where} AND timestamp>="{self.since}")'


@dataclass
class _Reader:
    """Reads a job's lines in rounds."""

    google: Google
    record: Record
    host: int | None
    hosts: dict[tuple[int, int], _Host] = field(default_factory=dict[tuple[int, int], _Host])
    ended: dict[int, float] = field(default_factory=dict[int, float])
    """When each attempt was first seen to have ended."""
    whole: Mapping[int, int] = field(default_factory=dict[int, int])
    """By host, how many lines the last attempt has."""

    def update(self, record: Record, results: Mapping[int, Result]) -> None:
        """Takes in which attempts there are, and where the last one's lines end."""
        self.record = record
        for attempt in record.attempts:
            for host in range(record.hosts) if self.host is None else [self.host]:
                key = (attempt.number, host)
                self.hosts.setdefault(key, _Host(*key, since=attempt.planned))
            if attempt.state in (ENDED, GONE) or (attempt is record.last and len(results) == record.hosts):
                self.ended.setdefault(attempt.number, time.monotonic())
        self.whole = {host: result.lines for host, result in results.items() if result.lines is not None}

    def open(self) -> list[_Host]:
        """The hosts whose lines may not all have been read."""
        return [host for host in self.hosts.values() if not self._done(host)]

    def _done(self, host: _Host) -> bool:
        ended = self.ended.get(host.attempt)
        if ended is None:
            return False
        whole = self.whole.get(host.host) if host.attempt == self.record.last.number else None
        return (whole is not None and host.next >= whole) or time.monotonic() - ended > DRAIN_S

    def read(self) -> Iterator[LogLine]:
        """What is new of every open host, in the order of time as Logging gives it."""
        hosts = self.open()
        if not hosts:
            return
        query = [f'logName="projects/{self.record.body["project"]}/logs/{marks.LOG}"']
        query.append(f'labels."{marks.JOB}"="{self.record.name}"')
        if len(hosts) > MOST_CLAUSES:
            query.append(f'timestamp>="{min(host.since for host in hosts)}"')
        else:
            query.append(f"({' OR '.join(host.clause() for host in hosts)})")
        for entry in self._entries(" AND ".join(query)):
            labels = mapping(entry.get("labels")) or {}
            key = (int(labels.get(marks.ATTEMPT, 0)), int(labels.get(marks.HOST, 0)))
            number = str(entry.get("insertId")).rpartition("-")[2]
            if key in self.hosts and number.isdigit():
                text = str(entry.get("textPayload", ""))
                lines = self.hosts[key].take(int(number), str(entry.get("timestamp")), text)
                yield from (self._line(key, at, said) for at, said in lines)

    def late(self, patience_s: float) -> Iterator[LogLine]:
        """Lines behind gaps that nobody fills."""
        for key, host in self.hosts.items():
            yield from (self._line(key, at, text) for at, text in host.give_up(patience_s))

    def _entries(self, query: str) -> Iterator[dict[str, Any]]:
        token: str | None = None
        body = {"resourceNames": [f"projects/{self.record.body['project']}"], "orderBy": "timestamp asc"}
        while True:
            page = self.google.post(
                "logging",
                "v2/entries:list",
                {**body, "filter": query, "pageSize": PAGE, **({"pageToken": token} if token else {})},
                repeat=True,
            )
            yield from page.get("entries") or []
            token = page.get("nextPageToken")
            if not token:
                return

    def _line(self, key: tuple[int, int], at: str, text: str) -> LogLine:
        attempt, host = key
        place = f"node {host}" if self.record.hosts > 1 and self.host is None else ""
        again = f"attempt {attempt}" if len(self.record.attempts) > 1 else ""
        return LogLine(datetime.fromisoformat(at), text, f"{place} {again}".strip())


def logs(
    google: Google,
    ref: JobRef,
    look: Callable[[], tuple[Record, Mapping[int, Result], bool]],
    *,
    host: int | None,
    follow: bool,
) -> Iterator[LogLine]:
    """The lines of all hosts side by side, or of one. `look` gives the record, the results of its last attempt, and
    whether the job has ended. Raises NotFound, and BadInput for a host that the job has not."""
    record, results, _ = look()
    if host is not None and not 0 <= host < record.hosts:
        raise BadInput(f"node: {ref} has nodes 0 to {record.hosts - 1}, not {host}")
    reader = _Reader(google, record, host)
    reader.update(record, results)
    if not follow:
        return _once(reader)
    return _followed(reader, look)


def _once(reader: _Reader) -> Iterator[LogLine]:
    reader.ended.clear()  # all is read again, however long ago it ended
    yield from reader.read()
    yield from reader.late(0)


def _followed(reader: _Reader, look: Callable[[], tuple[Record, Mapping[int, Result], bool]]) -> Iterator[LogLine]:
    timing = reader.google.timing
    blind_since: float | None = None
    wait_s, over = timing.poll_s, False
    while True:
        try:
            yield from reader.read()
            yield from reader.late(GAP_S)
            if over and not reader.open():
                yield from reader.late(0)
                return
            record, results, over = look()
            reader.update(record, results)
            blind_since, wait_s = None, timing.poll_s
        except CloudSilent:
            blind_since = blind_since or time.monotonic()
            if time.monotonic() - blind_since > timing.silence_s:
                raise
            wait_s = min(2 * wait_s, LONGEST_PAUSE_S)
        time.sleep(wait_s)
