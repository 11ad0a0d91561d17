"""Log lines of a job from CloudWatch Logs: each once, in order, until the job has ended and its log is drained.

GetLogEvents with its tokens loses nothing; Live Tail samples above 500 events a second
(https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_StartLiveTail.html). FilterLogEvents returns
only the lines with the progress mark, of a hundred attempts of an array's tasks a call. It may be called five times a
second (https://repost.aws/knowledge-center/cloudwatch-logs-throttling), and fails if one of the attempts never wrote
anything.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from accel.clouds.aws.batch_jobs import describe
from accel.clouds.aws.clients import Clients
from accel.clouds.aws.errors import asking
from accel.clouds.aws.responses import structure, structures
from accel.clouds.backoff import LONGEST_PAUSE_S, pause
from accel.clouds.rate_limit import Rate
from accel.diagnostics.errors import CloudSilent, NotFound

from ...runtime.lines import MARK
from ..base import JobRef, LogLine
from ..late_lines import WriterEnd
from ..tasks import check_task
from .status import PHASES, batch_time, detail, node_count, streams

BATCH_GROUP = "/aws/batch/job"
"""Log group that Batch uses without a log configuration."""
PAGE = 10_000
"""Most events of a call: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetLogEvents.html"""
LOOKED_AT_ONCE = 500
"""Tasks of an array whose state is read in one round: five calls."""


@dataclass
class _Stream:
    group: str
    name: str | None
    token: str | None = None
    stopped: datetime | None = None
    """End of its attempt, None if unknown."""
    end: WriterEnd | None = None
    """Since when, after the attempt's end, no event came."""


@dataclass
class _Tail:
    """Log of one job, task or node: its attempts one after the other."""

    id: str
    label: str
    present: int = 0
    streams: list[_Stream] = field(default_factory=list[_Stream])
    ended: bool = False
    looked: float = 0
    begun: bool = True
    """False as long as its last lines are still to be found."""

    def update(self, job: dict[str, Any], group: str | None) -> None:
        options = structure(structure(structure(job, "container"), "logConfiguration"), "options")
        in_group = options.get("awslogs-group") or group or BATCH_GROUP
        stops = [attempt.get("stoppedAt") for attempt in structures(job, "attempts")]
        for i, name in enumerate(streams(job)):
            if i == len(self.streams):
                self.streams.append(_Stream(in_group, name))
            self.streams[i].name = self.streams[i].name or name
            self.streams[i].stopped = batch_time(stops[i] if i < len(stops) else job.get("stoppedAt"))
        self.ended = PHASES[job["status"]].ended

    @property
    def source(self) -> str:
        attempt = f"attempt {self.present + 1}" if len(self.streams) > 1 else ""
        return f"{self.label} {attempt}".strip()

    @property
    def whole(self) -> bool:
        return self.ended and self.present >= len(self.streams)


def logs(
    clients: Clients, ref: JobRef, group: str | None, *, task: int | None, follow: bool, tail: int | None = None
) -> Iterator[LogLine]:
    """Yield the lines of one task or node, or of all side by side. `group`: log group if the job does not name one.
    `tail`: only the last of the lines so far. Raise NotFound, BadInput for a missing task or node."""
    job = detail(clients, ref)
    nodes = node_count(job)
    size = nodes or structure(job, "arrayProperties").get("size")
    word, mark = ("node", "#") if nodes else ("task", ":")
    check_task(ref, task, word if size else None, size or 0)
    wanted = [task] if task is not None else range(size or 0)
    tails = [_Tail(f"{ref.id}{mark}{i}", f"{word} {i}" if task is None else "") for i in wanted]
    return _Reader(clients, ref.id, tails or [_Tail(ref.id, "")], group, follow, tail).lines()


class _Reader:
    def __init__(
        self, clients: Clients, job_id: str, tails: list[_Tail], group: str | None, follow: bool, newest: int | None
    ) -> None:
        self._clients = clients
        self._timing = clients.timing
        self._job_id = job_id
        self._open = tails
        self._group = group
        self._follow = follow
        self._buffer: list[LogLine] = []
        self._newest = newest
        """Number of latest lines still to be returned. None once they have been, or if all lines are wanted."""
        for tail in tails:
            tail.begun = newest is None

    def lines(self) -> Iterator[LogLine]:
        blind_since: float | None = None
        wait_s = self._timing.poll_s
        if not self._follow:
            self._update(self._open)
        while True:
            busy, silent = False, None
            try:
                if self._follow:
                    self._update(sorted(self._open, key=lambda tail: tail.looked)[:LOOKED_AT_ONCE])
                # Each tail is read, whatever the first ones returned.
                busy = sum(self._read(tail) for tail in self._open) > 0
                blind_since, wait_s = None, self._timing.poll_s
            except CloudSilent as error:
                silent = error
            # Also after an error: the tokens have already passed these lines.
            if len(self._open) > 1:
                self._buffer.sort(key=lambda line: line.at)
            yield from self._ready()
            self._open = [tail for tail in self._open if not tail.whole]
            if silent:
                blind_since = blind_since or time.monotonic()
                if not self._follow or time.monotonic() - blind_since > self._timing.silence_s:
                    raise silent
                wait_s = min(2 * wait_s, LONGEST_PAUSE_S)
            elif not self._open or not (busy or self._follow):
                return
            if not busy:
                pause(wait_s)

    def _ready(self) -> list[LogLine]:
        """Hold back the last lines of all tails until those of each tail are known."""
        if not all(tail.begun for tail in self._open):
            return []
        count, self._newest = self._newest, None
        lines, self._buffer = self._buffer, []
        return lines if count is None else lines[-count:]

    def _update(self, tails: list[_Tail]) -> None:
        jobs = {
            job["jobId"]: job for job in describe(self._clients.batch, [self._job_id, *(tail.id for tail in tails)])
        }
        parent = jobs.get(self._job_id)
        over = parent is not None and PHASES[parent["status"]].ended
        for tail in tails:
            tail.looked = time.monotonic()
            if tail.id in jobs:
                tail.update(jobs[tail.id], self._group)
            elif over:
                tail.ended = True  # a task that was never created

    def _read(self, tail: _Tail) -> bool:
        """Return whether more may follow at once."""
        if not tail.begun:
            self._begin(tail, self._newest or 1)
            # Only new lines are left to be read.
            return self._follow
        if tail.present >= len(tail.streams):
            return False
        stream = tail.streams[tail.present]
        before, begun = stream.token, time.monotonic()
        events = self._page(stream)
        source = tail.source
        self._buffer += [LogLine(_at(event["timestamp"]), event["message"], source) for event in events]
        if events or stream.token != before:
            stream.end = None
            return True
        attempt_over = tail.ended or tail.present + 1 < len(tail.streams)
        if not attempt_over:
            return False
        stream.end = stream.end or WriterEnd(stream.stopped, self._timing.settle_s)
        if self._follow and not stream.end.is_whole(begun):
            return False
        tail.present += 1
        return not tail.whole

    def _begin(self, tail: _Tail, count: int) -> None:
        """Take the last lines of a log, from the last attempt backwards, and read on from there."""
        lines: list[LogLine] = []
        for place in reversed(range(len(tail.streams))):
            if len(lines) >= count:
                break
            tail.present = place
            source = tail.source
            events = self._newest_of(tail.streams[place], count - len(lines))
            lines = [LogLine(_at(event["timestamp"]), event["message"], source) for event in events] + lines
        tail.present = max(0, len(tail.streams) - 1)
        tail.begun = True
        self._buffer += lines

    def _newest_of(self, stream: _Stream, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        token: str | None = None
        while len(found) < count:
            answer = self._ask(stream, False, token, limit=min(PAGE, count - len(found)))
            if token is None:
                stream.token = answer.get("nextForwardToken")
            found = answer.get("events", []) + found
            # A page may be empty although there is more. At the end, the token stays the same.
            if answer.get("nextBackwardToken") in (None, token):
                break
            token = answer["nextBackwardToken"]
        return found

    def _page(self, stream: _Stream) -> list[dict[str, Any]]:
        """Read a page at most (10,000 events or 1 MiB). At the end, the token stays the same."""
        answer = self._ask(stream, True, stream.token)
        stream.token = answer.get("nextForwardToken", stream.token)
        return answer.get("events", [])

    def _ask(self, stream: _Stream, head: bool, token: str | None, limit: int = PAGE) -> dict[str, Any]:
        if stream.name is None:
            return {}
        more: dict[str, Any] = {"nextToken": token} if token else {}
        if limit < PAGE:
            more["limit"] = limit
        with asking(f"GetLogEvents {stream.name}"):
            try:
                answer = self._clients.logs.get_log_events(
                    logGroupName=stream.group, logStreamName=stream.name, startFromHead=head, **more
                )
            except self._clients.logs.exceptions.ResourceNotFoundException as error:
                if "log group" in str(error):
                    raise NotFound(f"log group {stream.group}: does not exist, though jobs write to it") from error
                return {}  # the stream appears with its first line
        if "nextForwardToken" not in answer:
            raise CloudSilent(f"GetLogEvents {stream.name}: the answer has no token")
        return answer


def _at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


STREAMS_AT_ONCE = 100
"""Source: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html"""
CALLS_PER_S = 5
PATTERN = f'"{MARK.strip()}"'


def progress_lines(
    clients: Clients, ref: JobRef, group: str | None, tasks: Sequence[int]
) -> Iterator[tuple[int, LogLine]]:
    """Yield progress lines, in order within each task, and lines that only look like them. `group`: see `logs`."""
    rate = Rate(CALLS_PER_S)
    groups: dict[str, dict[str, int]] = {}
    for job in describe(clients.batch, [f"{ref.id}:{task}" for task in tasks]):
        options = structure(structure(structure(job, "container"), "logConfiguration"), "options")
        of_task = groups.setdefault(options.get("awslogs-group") or group or BATCH_GROUP, {})
        of_task.update({name: int(str(job["jobId"]).rpartition(":")[2]) for name in streams(job) if name})
    for name, task_of in groups.items():
        # Attempts of a task are adjacent, so that those of an earlier call are the earlier ones.
        wanted = list(task_of)
        for start in range(0, len(wanted), STREAMS_AT_ONCE):
            yield from _lines(clients, rate, name, wanted[start : start + STREAMS_AT_ONCE], task_of)


def _lines(
    clients: Clients, rate: Rate, group: str, wanted: Sequence[str], task_of: dict[str, int]
) -> Iterator[tuple[int, LogLine]]:
    token: dict[str, str] = {}
    while True:
        rate.turn()
        with asking(f"FilterLogEvents {group}"):
            try:
                answer = clients.logs.filter_log_events(
                    logGroupName=group, logStreamNames=list(wanted), filterPattern=PATTERN, **token
                )
            except clients.logs.exceptions.ResourceNotFoundException:
                answer = None
        if answer is None:
            break
        for event in answer.get("events", []):
            at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
            yield task_of[event["logStreamName"]], LogLine(at, event["message"])
        if not answer.get("nextToken"):
            return
        token = {"nextToken": answer["nextToken"]}
    if len(wanted) > 1:  # one of them has no log
        half = len(wanted) // 2
        for part_of in (wanted[:half], wanted[half:]):
            yield from _lines(clients, rate, group, part_of, task_of)
