"""State of the sandbox's Batch: one lock, one clock, and one backend for each region."""

import heapq
import itertools
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from moto.batch.models import BatchBackend

from ..service_quotas import ServiceQuotas
from .instances import Instance, Needs

Document = dict[str, Any]
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$")


class BatchError(Exception):
    """Request that Batch answers with 400 ClientException."""


def require(holds: object, text: str) -> None:
    if not holds:
        raise BatchError(text)


def valid_name(request: Document, field: str) -> str:
    name: str = request[field]
    require(NAME.match(name), f"{field} {name!r} does not match {NAME.pattern}")
    return name


class World:
    """Lock, clock and settings that every backend and the scheduler share.

    A resource shows each change for `settle_s` seconds. An environment that a queue has unlinked cannot be deleted for
    another `unlink_s`.
    """

    def __init__(
        self, *, home: Path, root: Path, account_id: str, settle_s: float, unlink_s: float, grace_s: int
    ) -> None:
        self.home, self.jobs_dir, self.root = home, home / "jobs", root
        self.settle_s, self.unlink_s, self.grace_s = settle_s, unlink_s, grace_s
        self.quotas = ServiceQuotas(account_id)
        self.endpoint = ""
        # Requests and the scheduler change the same documents, and a conditional put in moto's DynamoDB is a read and a
        # write: all of it happens under this one lock.
        self.lock = threading.Condition(threading.RLock())
        self.offset_s = 0.0
        self.batches: list[Batch] = []
        # Faults of the control API: instance types that EC2 is out of, environments whose instances never register with
        # ECS, environments that are INVALID and why.
        self.stockouts: set[str] = set()
        self.unregistered: set[str] = set()
        self.invalid: dict[str, str] = {}
        self._timers: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return time.time() + self.offset_s

    def ms(self) -> int:
        """Return the sandbox's clock in milliseconds, as Batch writes times."""
        return int(self.now() * 1000)

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Have the scheduler run `action` once `seconds` have passed. The caller holds the lock."""
        heapq.heappush(self._timers, (self.now() + seconds, next(self._order), action))
        self.lock.notify_all()

    def run_due(self) -> float | None:
        """Run what is due, and return the seconds until the next timer, or None without one."""
        while self._timers and self._timers[0][0] <= self.now():
            heapq.heappop(self._timers)[2]()
        return self._timers[0][0] - self.now() if self._timers else None

    def advance(self, seconds: float) -> None:
        with self.lock:
            self.offset_s += seconds
            self.lock.notify_all()


@dataclass
class Environment:
    """Compute environment: its document, its instances, and Auto Scaling's last activities, newest first.

    A queue that has unlinked it holds it until `linked_until`, a time of the sandbox's clock.
    """

    document: Document
    instances: dict[str, Instance] = field(default_factory=dict)
    activities: deque[Document] = field(default_factory=lambda: deque(maxlen=100))
    linked_until: float = 0.0

    @property
    def name(self) -> str:
        return self.document["computeEnvironmentName"]

    @property
    def usable(self) -> bool:
        return (self.document["state"], self.document["status"]) == ("ENABLED", "VALID")

    @property
    def vcpus(self) -> int:
        return sum(instance.kind.vcpus for instance in self.instances.values())


@dataclass
class Queue:
    """Job queue: its document, its jobs in the order of submission, those that wait for an instance, and the usage of
    ended ones (share identifier, vCPUs, start and end)."""

    document: Document
    jobs: "dict[str, Job]" = field(default_factory=dict)
    runnable: "dict[str, Job]" = field(default_factory=dict)
    used: deque[tuple[str, float, float, float]] = field(default_factory=deque)


@dataclass(frozen=True)
class Outcome:
    status_reason: str
    succeeded: bool = False
    retry: bool = True


class Attempt(Protocol):
    """Run of run.py, as the other modules see it."""

    environment: Environment
    instance: Instance
    gpus: list[str]
    container: Document
    placed_at: float
    started_at: int | None
    outcome: Outcome | None

    def poll(self) -> None: ...
    def stop(self, reason: str, *, retry: bool) -> None: ...
    def kill(self) -> None: ...


@dataclass(eq=False, slots=True)
class Job:
    """Job of any kind: single, an array's parent or child, a multi-node job (which has `nodes`) or one of its nodes
    (which has `whole`).

    `document` is the answer of DescribeJobs. A node runs on one of `types`, where there are any.
    """

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
    run: Attempt | None = None
    whole: "Job | None" = None
    nodes: "list[Job]" = field(default_factory=list)
    types: tuple[str, ...] = ()
    outcome: Outcome | None = None

    @property
    def id(self) -> str:
        return self.document["jobId"]

    @property
    def status(self) -> str:
        return self.document["status"]

    @property
    def ended(self) -> bool:
        return self.status in ("SUCCEEDED", "FAILED")

    @property
    def active(self) -> bool:
        return any(one.run for one in self.nodes or [self])

    @property
    def main(self) -> "Job":
        """The node that decides how a multi-node job ends."""
        return self.nodes[self.document["nodeProperties"]["mainNode"]]


class Batch(BatchBackend):
    """One account and region; tags are moto's own."""

    world: ClassVar[World]

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.environments: dict[str, Environment] = {}
        self.queues: dict[str, Queue] = {}
        self.policies: dict[str, Document] = {}
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
        return f"arn:{self.partition}:batch:{self.region_name}:{self.account_id}:{kind}/{name}"

    def settle(self, document: Document, status: str, then: Callable[[], object]) -> None:
        document["status"] = status
        self.world.after(self.world.settle_s, then)


def short(name_or_arn: str) -> str:
    return name_or_arn.rpartition("/")[2]


def page(rows: Iterable[Document], key: str, request: Document, limit: int) -> tuple[list[Document], Document]:
    """Return one page of `rows`, and the answer's nextToken: the last row's `key`."""
    found = list(rows)
    start = 0
    if token := request.get("nextToken"):
        start = next((at + 1 for at, row in enumerate(found) if row[key] == token), -1)
        require(start >= 0, f"Invalid nextToken: {token}")
    end = start + min(request.get("maxResults") or limit, limit)
    return found[start:end], ({"nextToken": found[end - 1][key]} if end < len(found) else {})
