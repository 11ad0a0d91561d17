"""Entries of Cloud Logging, read in pages and followed: nothing is lost and nothing comes twice.

listed(google, project, query)      every entry that a query has now, the oldest first
last(google, project, query, count) the newest of them; newest() likewise, where every one counts
Tail(google, project, query, since) the entries of a query that were not seen before, at each `read`: for writers that
                                    do not number their lines
said(tail, line, stopped=None)      the lines of a Tail: those so far, or followed until `stopped` tells of an end and
                                    the log is drained
followed(timing, read, over)        rounds of reading, through times in which nothing answers

Queries are of the language at https://docs.cloud.google.com/logging/docs/view/logging-query-language; a project may
make 60 a minute (https://docs.cloud.google.com/logging/quotas#api-limits), so one query serves all tasks of a job, and
one that is refused for that is made again.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from accel.clouds.google.api import Google
from accel.clouds.google.rest import REACH, GarbledAnswer, entries, mapping
from accel.clouds.timeouts import Timing
from accel.diagnostics.errors import CloudSilent, Throttled

from .base import LogLine

PAGE = 1000
"""The most that a page has."""
LATE = timedelta(seconds=60)
"""How long after it was received an entry may be shown for the first time."""
SURELY_LATE = timedelta(seconds=10)
"""As much of LATE is kept where so many lines come that the rest would be read again and again."""
MANY = 20_000
"""Lines in LATE are many from here on: a third of what a project may read in a minute."""

Entry = dict[str, Any]


def list_entries(google: Google, project: str, query: str) -> Iterator[Entry]:
    """In the order of their timestamps; those of one timestamp in the order of their insertIds."""
    body = {"resourceNames": [f"projects/{project}"], "orderBy": "timestamp asc", "filter": query, "pageSize": PAGE}
    token: str | None = ""
    while token is not None:
        page = _page(google, {**body, "pageToken": token} if token else body)
        # A page may be empty and have one after it.
        yield from (mapping(each) or {} for each in entries(page.get("entries")))
        token = page.get("nextPageToken") or None


def last(google: Google, project: str, query: str, count: int) -> list[Entry]:
    """At most so many, the newest of them, the oldest first."""
    body = {"resourceNames": [f"projects/{project}"], "orderBy": "timestamp desc", "filter": query}
    found: list[Entry] = []
    token: str | None = ""
    while token is not None and len(found) < count:
        asked = {**body, "pageSize": min(PAGE, count - len(found)), **({"pageToken": token} if token else {})}
        page = _asked(google, asked)
        found += [mapping(each) or {} for each in entries(page.get("entries"))]
        token = page.get("nextPageToken") or None
    # Those of one timestamp are in the order of their insertIds, whichever way they came.
    groups = [list(group)[::-1] for _, group in groupby(found, lambda entry: entry.get("timestamp"))]
    return [entry for group in reversed(groups) for entry in sorted(group, key=lambda each: str(each.get("insertId")))]


def newest(google: Google, project: str, query: str, count: int) -> list[Entry]:
    """As last, and exact where entries of one timestamp are more than there is room for: of those the last ones."""
    found = last(google, project, query, count)
    if len(found) < count:
        return found
    oldest = found[0].get("timestamp")
    after = [entry for entry in found if entry.get("timestamp") != oldest]
    same = list(list_entries(google, project, f'{query} AND timestamp>="{oldest}" AND timestamp<="{oldest}"'))
    return [*same[len(same) + len(after) - count :], *after] if same else found


def _page(google: Google, body: Mapping[str, Any]) -> dict[str, Any]:
    """A page, however many were read in this minute."""
    timing = google.timing
    until = time.monotonic() + timing.silence_s
    while True:
        try:
            return _asked(google, body)
        except Throttled:
            if time.monotonic() > until:
                raise
        time.sleep(timing.longest_wait_s)


def _asked(google: Google, body: Mapping[str, Any]) -> dict[str, Any]:
    answer = google.post("logging", "v2/entries:list", body, repeat=True)
    if answer and not answer.keys() & {"entries", "nextPageToken"}:
        raise GarbledAnswer("logging: what was answered is no page of entries", REACH)
    return answer


@dataclass
class Tail:
    """What a query has, each entry once, however late Logging shows it and in whatever order its writers write.

    Each round asks for what Logging has received since a little before the newest that was seen: a line with an old
    time of its own, of a machine whose clock is behind or that could not write for an hour, has a new receiveTimestamp.
    What is known is told apart by timestamp and insertId, which are what Logging itself knows an entry by
    (https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry). A round's entries are in the order of
    their timestamps; one that comes in a later round comes after them.
    """

    google: Google
    project: str
    query: str
    """Without times."""
    since: datetime
    """No entry has an older timestamp."""
    _from: datetime | None = None
    """Whatever was received before has been read."""
    _seen: dict[tuple[str, str], datetime] = field(default_factory=dict[tuple[str, str], datetime])
    """Timestamp and insertId of the entries received since then that have been read, and when they were received."""

    @property
    def whole(self) -> str:
        """The query for all entries."""
        return f'{self.query} AND timestamp>="{_text(self.since)}"'

    def read(self) -> Iterator[Entry]:
        """The entries that are new."""
        query = self.whole if self._from is None else f'{self.whole} AND receiveTimestamp>="{_text(self._from)}"'
        for entry in list_entries(self.google, self.project, query):
            key = str(entry.get("timestamp")), str(entry.get("insertId"))
            if key not in self._seen:
                self._seen[key] = parse_time(entry.get("receiveTimestamp")) or datetime.now(UTC)
                yield entry
        # Only now: of a round that was broken off, all is asked for again.
        self._forget()

    def newest(self, count: int) -> list[Entry]:
        """The last entries that there are now, and from then on `read` gives what comes after them."""
        found = newest(self.google, self.project, self.whole, count)
        if found:
            oldest = str(found[0].get("timestamp"))
            self.since = parse_time(oldest) or self.since
            # Of one microsecond, which is how exact `since` is, some may have been left out.
            for entry in [*list_entries(self.google, self.project, f'{self.whole} AND timestamp<="{oldest}"'), *found]:
                key = str(entry.get("timestamp")), str(entry.get("insertId"))
                self._seen[key] = parse_time(entry.get("receiveTimestamp")) or datetime.now(UTC)
        return found

    def _forget(self) -> None:
        """Moves on to what may still be shown for the first time."""
        if not self._seen:
            return
        newest = max(self._seen.values())
        many = sum(received >= newest - LATE for received in self._seen.values()) > MANY
        start = newest - (SURELY_LATE if many else LATE)
        self._from = max(self._from or start, start)
        self._seen = {key: received for key, received in self._seen.items() if received >= self._from}


def log_lines(
    tail: Tail,
    line: Callable[[Entry], LogLine | None],
    stopped: Callable[[], datetime | None] | None = None,
    count: int | None = None,
) -> Iterator[LogLine]:
    """The lines that `line` makes of the entries; None leaves one out. With `stopped`, which gives when the writers
    stopped, or None while they have not: until timing.drain_s after that. `count`: of the entries so far the last ones
    only. Raises CloudSilent after timing.silence_s."""

    def to_lines(found: Iterator[Entry]) -> Iterator[LogLine]:
        return (each for entry in found if (each := line(entry)) is not None)

    if stopped is None:
        if count is not None:
            return to_lines(iter(newest(tail.google, tail.project, tail.whole, count)))
        return to_lines(list_entries(tail.google, tail.project, tail.whole))

    def read() -> Iterator[LogLine]:
        nonlocal count
        if count is None:
            return to_lines(tail.read())
        newest, count = tail.newest(count), None
        return to_lines(iter(newest))

    timing = tail.google.timing
    return follow(timing, read, DrainCheck(stopped, timing))


@dataclass
class DrainCheck:
    """Whether nothing more can come, asked after each round: it has begun when the last lines had had their time."""

    stopped: Callable[[], datetime | None]
    timing: Timing
    _since: float | None = None
    """When the writers stopped: of the monotonic clock."""
    _begun: float = field(init=False)
    """When the round before this question was begun, or earlier."""

    def __post_init__(self) -> None:
        self._begun = time.monotonic()

    def __call__(self) -> bool:
        if self._since is None and (at := self.stopped()) is not None:
            ago = (datetime.now(UTC) - at).total_seconds()
            self._since = time.monotonic() - max(0.0, ago)
        if self._since is not None and self._begun - self._since >= self.timing.drain_s:
            return True
        self._begun = time.monotonic()
        return False


def follow(timing: Timing, read: Callable[[], Iterator[LogLine]], over: Callable[[], bool]) -> Iterator[LogLine]:
    """What `read` gives, in rounds until `over` is true, which is asked after each. Raises CloudSilent once neither has
    been answered for timing.silence_s."""
    blind_since: float | None = None
    wait_s = timing.poll_s
    while True:
        try:
            yield from read()
            if over():
                return
            blind_since, wait_s = None, timing.poll_s
        except CloudSilent:
            blind_since = blind_since or time.monotonic()
            if time.monotonic() - blind_since > timing.silence_s:
                raise
            wait_s = min(2 * wait_s, timing.longest_wait_s)
        time.sleep(wait_s)


def parse_time(text: object) -> datetime | None:
    """A time of Google's, which may have nanoseconds; None for what is none."""
    head, dot, rest = str(text or "").partition(".")
    zone = rest.lstrip("0123456789")
    try:
        return datetime.fromisoformat(f"{head}{dot}{rest.removesuffix(zone)[:6]}{zone}" if dot else head)
    except ValueError:
        return None


def _text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
