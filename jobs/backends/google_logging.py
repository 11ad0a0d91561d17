"""Entries of Cloud Logging, read in pages and followed, without loss or repetition.

Queries use the language at https://docs.cloud.google.com/logging/docs/view/logging-query-language. A project may make
60 a minute (https://docs.cloud.google.com/logging/quotas#api-limits), so one query serves all tasks of a job, and a
query that is refused for that limit is repeated.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from accel.clouds.google.api import Google
from accel.clouds.google.rest import REACH, GarbledAnswer
from accel.clouds.timeouts import Timing
from accel.diagnostics.errors import CloudSilent, Throttled
from accel.json_values import entries, object_at

from .base import LogLine
from .late_lines import WriterEnd

PAGE = 1000
LATE = timedelta(seconds=60)
"""Longest time between the receipt of an entry and its first appearance."""
SURELY_LATE = timedelta(seconds=10)
"""Reduced LATE, for logs with so many lines that the full span would be read again and again."""
MANY = 20_000
"""Number of lines within LATE from which the span is reduced: a third of what a project may read in a minute."""

Entry = dict[str, Any]


def list_entries(google: Google, project: str, query: str) -> Iterator[Entry]:
    """Yield entries in the order of their timestamps, and of their insertIds within one timestamp."""
    body = {"resourceNames": [f"projects/{project}"], "orderBy": "timestamp asc", "filter": query, "pageSize": PAGE}
    token: str | None = ""
    while token is not None:
        page = _page(google, {**body, "pageToken": token} if token else body)
        # A page may be empty and still be followed by another one.
        yield from (object_at(each) for each in entries(page.get("entries")))
        token = page.get("nextPageToken") or None


def last(google: Google, project: str, query: str, count: int) -> list[Entry]:
    """Return the newest entries, oldest first."""
    body = {"resourceNames": [f"projects/{project}"], "orderBy": "timestamp desc", "filter": query}
    found: list[Entry] = []
    token: str | None = ""
    while token is not None and len(found) < count:
        asked = {**body, "pageSize": min(PAGE, count - len(found)), **({"pageToken": token} if token else {})}
        page = _asked(google, asked)
        found += [object_at(each) for each in entries(page.get("entries"))]
        token = page.get("nextPageToken") or None
    # Entries of one timestamp are in the order of their insertIds, whatever order they came in.
    groups = [list(group)[::-1] for _, group in groupby(found, lambda entry: entry.get("timestamp"))]
    return [entry for group in reversed(groups) for entry in sorted(group, key=lambda each: str(each.get("insertId")))]


def newest(google: Google, project: str, query: str, count: int) -> list[Entry]:
    """Return the same as `last`, but exactly the last entries even if not all entries of one timestamp fit."""
    found = last(google, project, query, count)
    if len(found) < count:
        return found
    oldest = found[0].get("timestamp")
    after = [entry for entry in found if entry.get("timestamp") != oldest]
    same = list(list_entries(google, project, f'{query} AND timestamp>="{oldest}" AND timestamp<="{oldest}"'))
    return [*same[len(same) + len(after) - count :], *after] if same else found


def _page(google: Google, body: Mapping[str, Any]) -> dict[str, Any]:
    """Wait while the project's reads of this minute are used up."""
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
    """Entries of a query, each once, however late Logging shows it and in whatever order its writers write. For writers
    that do not number their lines.

    Each round asks for what Logging has received since shortly before the newest entry so far: a line with an old time,
    from a machine whose clock is behind or that could not write for an hour, has a new receiveTimestamp. Timestamp and
    insertId identify an entry (https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry). Only within a
    round are entries in the order of their timestamps.
    """

    google: Google
    project: str
    query: str
    """Filter without times."""
    since: datetime
    _from: datetime | None = None
    """Receive time up to which everything has been read."""
    _seen: dict[tuple[str, str], datetime] = field(default_factory=dict[tuple[str, str], datetime])
    """Receive times of the entries read since then, by timestamp and insertId."""

    @property
    def whole(self) -> str:
        return f'{self.query} AND timestamp>="{_text(self.since)}"'

    def read(self) -> Iterator[Entry]:
        query = self.whole if self._from is None else f'{self.whole} AND receiveTimestamp>="{_text(self._from)}"'
        for entry in list_entries(self.google, self.project, query):
            key = str(entry.get("timestamp")), str(entry.get("insertId"))
            if key not in self._seen:
                self._seen[key] = parse_time(entry.get("receiveTimestamp")) or datetime.now(UTC)
                yield entry
        # Only now: after an aborted round, everything is requested again.
        self._forget()

    def newest(self, count: int) -> list[Entry]:
        """Return the newest entries so far; `read` then yields those after them."""
        found = newest(self.google, self.project, self.whole, count)
        if found:
            oldest = str(found[0].get("timestamp"))
            self.since = parse_time(oldest) or self.since
            # `since` is exact to a microsecond, and some entries of the same one may be missing.
            for entry in [*list_entries(self.google, self.project, f'{self.whole} AND timestamp<="{oldest}"'), *found]:
                key = str(entry.get("timestamp")), str(entry.get("insertId"))
                self._seen[key] = parse_time(entry.get("receiveTimestamp")) or datetime.now(UTC)
        return found

    def _forget(self) -> None:
        """Advance the start to the earliest entry that may still appear for the first time."""
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
    """Yield what `line` makes of the entries, None to omit one. `count`: only the last of the lines so far. `stopped`
    returns when the writers stopped, None before: with it, follow the log until it is whole after that (WriterEnd,
    with timing.drain_s). Raise CloudSilent after timing.silence_s."""

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
    """Test for the end of a log, called after each round: true if the round began when the last lines had arrived."""

    stopped: Callable[[], datetime | None]
    timing: Timing
    _end: WriterEnd | None = None
    _begun: float = field(init=False)
    """Time when the previous round began, or earlier."""

    def __post_init__(self) -> None:
        self._begun = time.monotonic()

    def __call__(self) -> bool:
        if self._end is None and (at := self.stopped()) is not None:
            self._end = WriterEnd(at, self.timing.drain_s)
        if self._end is not None and self._end.is_whole(self._begun):
            return True
        self._begun = time.monotonic()
        return False


def follow(timing: Timing, read: Callable[[], Iterator[LogLine]], over: Callable[[], bool]) -> Iterator[LogLine]:
    """Repeat `read` until `over` returns true. Raise CloudSilent after timing.silence_s without an answer to either."""
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
    """Parse a time of Google's, which may have nanoseconds. Return None for anything else."""
    head, dot, rest = str(text or "").partition(".")
    zone = rest.lstrip("0123456789")
    try:
        return datetime.fromisoformat(f"{head}{dot}{rest.removesuffix(zone)[:6]}{zone}" if dot else head)
    except ValueError:
        return None


def _text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
