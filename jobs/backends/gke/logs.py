"""Log lines of a job from its pods: each once, in order, until the job has ended and every pod was read to its end.

A log is requested from the second of its last line on, and known lines are skipped by their time stamp, so neither a
broken connection nor a second that two reads share loses or repeats a line. Lines that the node has rotated away, and
the log of a deleted pod, are lost.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound
from accel.json_values import object_at

from ..base import JobRef, LogLine
from ..tasks import check_task
from . import labels, lookup
from .labels import Scope
from .lookup import GkeJob
from .status import status

LONGEST_PAUSE_S = 8
PAUSE_S, READS_A_SECOND = 0.5, 20
"""Pause between rounds, longer for each pod: the API server allows a client about that many reads a second."""


@dataclass
class _Tail:
    """Log of one pod, read up to a time stamp."""

    name: str
    index: int
    attempt: int
    last: str = ""
    """Time stamp of the last returned line."""
    same: int = 0
    """Number of returned lines with that time stamp."""
    ended: bool = False
    """Whether one more read completes the log."""
    whole: bool = False

    def take(self, lines: Iterator[str]) -> Iterator[tuple[str, str]]:
        """Yield new lines as pairs of time stamp and text."""
        skip = self.same
        for line in lines:
            stamp, _, text = line.partition(" ")
            if stamp < self.last:
                continue
            if stamp == self.last and skip:
                skip -= 1
                continue
            if lookup.at(_micro(stamp)) is None:
                continue  # a message of the node, not of the job
            self.same = self.same + 1 if stamp == self.last else 1
            self.last = stamp
            yield stamp, text


@dataclass
class _Reader:
    api: Api
    scope: Scope
    ref: JobRef
    task: int | None
    several: str | None
    tails: dict[str, _Tail] = field(default_factory=dict[str, _Tail])

    def update(self) -> None:
        seen: dict[int, int] = {}
        there: set[str] = set()
        for pod in self._pods():
            name, index = str(object_at(pod, "metadata").get("name")), lookup.index(pod)
            seen[index] = seen.get(index, 0) + 1
            there.add(name)
            tail = self.tails.setdefault(name, _Tail(name, index, seen[index]))
            tail.ended = object_at(pod, "status").get("phase") in ("Succeeded", "Failed")
        for name in self.tails.keys() - there:
            self.tails[name].ended = True

    def _pods(self) -> list[dict[str, Any]]:
        selector = f"{labels.OBJECT}={self.ref.id}"
        if self.task is not None:
            selector += f",{labels.INDEX}={self.task}"
        listed = self.api.items(self.scope.core("pods"), labelSelector=selector)
        return sorted(listed, key=lambda pod: str(object_at(pod, "metadata").get("creationTimestamp")))

    def read(self, into: list[tuple[str, LogLine]], newest: int | None = None) -> None:
        """Append new lines, or the `newest` of pods that were not read before. Keep those read before an error."""
        for tail in list(self.tails.values()):
            if tail.whole:
                continue
            ended = tail.ended
            first = newest if newest is not None and not tail.last else None
            query = {
                "container": labels.CONTAINER,
                "timestamps": True,
                "sinceTime": _second(tail.last),
                "tailLines": None if first is None else str(first),
            }
            path = f"{self.scope.core('pods')}/{tail.name}/log"
            try:
                for stamp, text in tail.take(self.api.lines(path, **query)):
                    at = lookup.at(_micro(stamp))
                    assert at is not None
                    into.append((stamp, LogLine(at, text, self._source(tail))))
            except NotFound:
                ended = True
            except CloudRefused as refused:
                # A container that has not started, or whose node never reported it, has no log: 400.
                if not refused.message.endswith(("ContainerCreating", "PodInitializing")) and "waiting" not in (
                    refused.message
                ):
                    raise
            tail.whole = ended

    def pause_s(self) -> float:
        unread = sum(not tail.whole for tail in self.tails.values())
        return min(self.api.timing.poll_s, PAUSE_S + unread / READS_A_SECOND)

    def _source(self, tail: _Tail) -> str:
        place = f"{self.several} {tail.index}" if self.several and self.task is None else ""
        again = f"attempt {tail.attempt}" if self._attempts(tail.index) > 1 else ""
        return f"{place} {again}".strip()

    def _attempts(self, index: int) -> int:
        return sum(1 for tail in self.tails.values() if tail.index == index)


def logs(
    api: Api, scope: Scope, ref: JobRef, *, task: int | None, follow: bool, tail: int | None = None
) -> Iterator[LogLine]:
    """Yield the lines of all pods side by side, or of one task or node. `tail`: only the last of the lines so far.
    Raise NotFound, BadInput for a task or node that does not exist."""
    job = GkeJob(lookup.body(api, scope, ref.id))
    check_task(ref, task, job.several, job.count)
    return _lines(_Reader(api, scope, ref, task, job.several), follow, tail)


def _lines(reader: _Reader, follow: bool, newest: int | None) -> Iterator[LogLine]:
    timing = reader.api.timing
    blind_since: float | None = None
    wait_s = timing.poll_s
    read: list[tuple[str, LogLine]] = []
    while True:
        over, silent = False, None
        try:
            # The order matters: pods that a job creates before its end are listed after it.
            over = not follow or status(reader.api, reader.scope, reader.ref).phase.ended
            reader.update()
            reader.read(read, newest)
            blind_since, wait_s = None, reader.pause_s()
        except CloudSilent as error:
            silent = error
        read.sort(key=lambda each: each[0])
        if newest is None or not silent:  # the last lines of all pods are known once each has been read
            yield from (line for _, line in (read if newest is None else read[-newest:]))
            read, newest = [], None
        if silent:
            blind_since = blind_since or time.monotonic()
            if not follow or time.monotonic() - blind_since > timing.silence_s:
                raise silent
            wait_s = min(2 * wait_s, LONGEST_PAUSE_S)
        elif over and (not follow or all(tail.whole for tail in reader.tails.values())):
            return
        time.sleep(wait_s)


def _second(stamp: str) -> str | None:
    """Cut to the second, which is the precision of `sinceTime`."""
    return f"{stamp[:19]}Z" if stamp else None


def _micro(stamp: str) -> str:
    """Shorten a time stamp with nanoseconds to what Python reads."""
    head, dot, rest = stamp.partition(".")
    return f"{head}{dot}{rest.rstrip('Z')[:6]}Z" if dot else stamp
