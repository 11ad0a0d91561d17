"""What the sandbox's Batch keeps: one lock, one clock, and one backend for each region."""

import heapq
import itertools
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from moto.batch.models import BatchBackend

from .instances import Instance, Needs

if TYPE_CHECKING:
    from .run import Run

Document = dict[str, Any]
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$")


class Refused(Exception):
    """A request that Batch answers with 400 ClientException."""


def require(holds: object, text: str) -> None:
    """Refuse the request with `text` unless `holds`."""
    if not holds:
        raise Refused(text)


class World:
    """The lock, the clock and the settings that every backend and the scheduler share."""

    def __init__(self, *, home: Path, root: Path, runner: Path, settle_s: float = 0.3, grace_s: int = 30) -> None:
        self.jobs_dir, self.root, self.runner = home / "jobs", root, runner
        self.settle_s, self.grace_s = settle_s, grace_s
        self.endpoint = ""
        # Requests and the scheduler change the same documents, and a conditional put in moto's DynamoDB is a
        # read and a write: all of it happens under this one lock.
        self.lock = threading.Condition(threading.RLock())
        self.offset_s = 0.0
        self.batches: list[Batch] = []
        self.stockouts: set[str] = set()
        self._timers: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()

    def now(self) -> float:
        """Seconds since the epoch on the sandbox's clock."""
        return time.time() + self.offset_s

    def ms(self) -> int:
        """The sandbox's clock in milliseconds, as Batch writes times."""
        return int(self.now() * 1000)

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Have the scheduler run `action` once `seconds` have passed. The caller holds the lock."""
        heapq.heappush(self._timers, (self.now() + seconds, next(self._order), action))
        self.lock.notify_all()

    def run_due(self) -> float | None:
        """Run what is due; seconds until the next timer, None where there is none."""
        while self._timers and self._timers[0][0] <= self.now():
            heapq.heappop(self._timers)[2]()
        return self._timers[0][0] - self.now() if self._timers else None

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        with self.lock:
            self.offset_s += seconds
            self.lock.notify_all()


@dataclass
class Environment:
    """A compute environment: its document and the instances that it runs."""

    document: Document
    instances: dict[str, Instance] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        return (self.document["state"], self.document["status"]) == ("ENABLED", "VALID")

    @property
    def vcpus(self) -> int:
        return sum(instance.kind.vcpus for instance in self.instances.values())


@dataclass
class Queue:
    """A job queue: its document, its jobs in the order of submission, and those that wait for a place."""

    document: Document
    jobs: "dict[str, Job]" = field(default_factory=dict)
    runnable: "dict[str, Job]" = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Job:
    """A job, an array's parent or one of its children; `document` is what DescribeJobs answers."""

    queue: Queue
    document: Document
    container: Document
    needs: Needs
    overrides: Document
    parent: "Job | None" = None
    children: "list[Job]" = field(default_factory=list)
    waiting_on: set[str] = field(default_factory=set)
    blocked_since: float | None = None
    cancelled: str | None = None
    run: "Run | None" = None

    @property
    def id(self) -> str:
        return self.document["jobId"]

    @property
    def status(self) -> str:
        return self.document["status"]

    @property
    def ended(self) -> bool:
        return self.status in ("SUCCEEDED", "FAILED")


class Batch(BatchBackend):
    """One account and region; tags and scheduling policies are moto's own."""

    world: ClassVar[World]

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.environments: dict[str, Environment] = {}
        self.queues: dict[str, Queue] = {}
        self.definitions: dict[str, list[Document]] = {}
        self.jobs: dict[str, Job] = {}
        self.submitted: deque[Job] = deque()
        self.just_ended: list[Job] = []
        self.dependents: dict[str, list[Job]] = {}
        self.running: dict[str, Job] = {}
        if self not in self.world.batches:
            self.world.batches.append(self)

    def reset(self) -> None:
        for job in self.running.values():
            if job.run:
                job.run.kill()
        super().reset()

    def arn(self, kind: str, name: str) -> str:
        """The ARN of a resource of this account and region."""
        return f"arn:{self.partition}:batch:{self.region_name}:{self.account_id}:{kind}/{name}"

    def settle(self, document: Document, status: str, then: Callable[[], object]) -> None:
        """Show `status` for the settle time, then let `then` decide."""
        document["status"] = status
        self.world.after(self.world.settle_s, then)


def short(name_or_arn: str) -> str:
    """The name of what a name or an ARN names."""
    return name_or_arn.rpartition("/")[2]


def page(rows: Iterable[Document], key: str, request: Document, limit: int) -> tuple[list[Document], Document]:
    """One page of `rows`, and the answer's nextToken, which is the last row's `key`."""
    found = list(rows)
    start = 0
    if token := request.get("nextToken"):
        start = next((at + 1 for at, row in enumerate(found) if row[key] == token), -1)
        require(start >= 0, f"Invalid nextToken: {token}")
    end = start + min(request.get("maxResults") or limit, limit)
    return found[start:end], ({"nextToken": found[end - 1][key]} if end < len(found) else {})
