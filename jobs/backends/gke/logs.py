"""A job's lines from its pods: each once, in order, until the job has ended and every pod was read to its end.

A log is asked for from the second of its last line on, and lines up to that one are left out by their time stamp; so
neither a broken connection nor a second that two reads share loses or repeats a line. What the node has rotated away,
and the log of a pod that is gone, nobody has.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.responses import object_at
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, NotFound

from ..base import JobRef, LogLine
from . import labels, lookup
from .labels import Scope
from .lookup import GkeJob
from .status import status

LONGEST_PAUSE_S = 8
PAUSE_S, READS_A_SECOND = 0.5, 20
"""Between two looks, with so much more for every pod that the API server has about so many reads of one client."""


@dataclass
class _Tail:
    """The log of one pod, read up to a time stamp."""

    name: str
    index: int
    attempt: int
    last: str = ""
    """Time stamp of the last line that was handed on."""
    same: int = 0
    """How many lines had it."""
    ended: bool = False
    """Nothing more can come once it is read again."""
    whole: bool = False

    def take(self, lines: Iterator[str]) -> Iterator[tuple[str, str]]:
        """Those of the lines that are new, with their time stamps."""
        skip = self.same
        for line in lines:
            stamp, _, text = line.partition(" ")
            if stamp < self.last:
                continue
            if stamp == self.last and skip:
                skip -= 1
                continue
            if lookup.at(_micro(stamp)) is None:
                continue  # a message of the node's, not of the job's
            self.same = self.same + 1 if stamp == self.last else 1
            self.last = stamp
            yield stamp, text


@dataclass
class _Reader:
    """Reads the pods of a job in rounds."""

    api: Api
    scope: Scope
    ref: JobRef
    task: int | None
    several: str | None
    tails: dict[str, _Tail] = field(default_factory=dict[str, _Tail])

    def update(self) -> None:
        """Takes in which pods there are now."""
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
        """What is new of every pod, or the newest lines of those that were not read before; what came before an error
        is kept."""
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
                # A container that has not started, or whose node never told of it, has no log: 400.
                if not refused.message.endswith(("ContainerCreating", "PodInitializing")) and "waiting" not in (
                    refused.message
                ):
                    raise
            tail.whole = ended

    def pause_s(self) -> float:
        """Until the next look."""
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
    """The lines of all pods side by side, or of one task's or node's; `tail`: of those so far the last ones only.

    Raises NotFound, BadInput for one that is not.
    """
    job = GkeJob(lookup.body(api, scope, ref.id))
    if task is not None and not (job.several and 0 <= task < job.count):
        word = job.several or "task"
        has = f"{word}s 0 to {job.count - 1}" if job.several else "no tasks"
        raise BadInput(f"{word}: {ref} has {has}, not {task}")
    return _lines(_Reader(api, scope, ref, task, job.several), follow, tail)


def _lines(reader: _Reader, follow: bool, newest: int | None) -> Iterator[LogLine]:
    timing = reader.api.timing
    blind_since: float | None = None
    wait_s = timing.poll_s
    read: list[tuple[str, LogLine]] = []
    while True:
        over, silent = False, None
        try:
            # In this order: pods that a job made before its end are listed after it.
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
    """The second that a time stamp is in, which is how exact `sinceTime` is."""
    return f"{stamp[:19]}Z" if stamp else None


def _micro(stamp: str) -> str:
    """A time stamp with nanoseconds, as Python reads it."""
    head, dot, rest = stamp.partition(".")
    return f"{head}{dot}{rest.rstrip('Z')[:6]}Z" if dot else stamp
