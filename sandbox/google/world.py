"""State of the sandbox's Google: resources by API and name, policies, running operations, log entries."""

import base64
import copy
import json
import re
import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from . import PROJECT, PROJECT_NUMBER, account_token, scope_token
from .discovery import Document, Method
from .errors import Failure
from .faults import Plan
from .guests.guests import Guests
from .log_filter import Filter

Json = dict[str, Any]
_Place = tuple[int, str]
"""Nanoseconds (negative where the newest are first) and insertId, by which entries of one time are ordered."""


@dataclass
class StoredEntry:
    """Entry, and from when on (monotonic) it can be read."""

    entry: Json
    seen: float


@dataclass
class Logs:
    """Entries by time and insertId. Of two with the same, one is kept, as a query returns only one. Source:
    https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry (insertId)."""

    _kept: dict[_Place, StoredEntry] = field(default_factory=dict[_Place, StoredEntry])
    _orders: dict[bool, list[_Place]] = field(default_factory=dict[bool, list[_Place]])

    def add(self, entry: Json, delay_s: float) -> None:
        """Add an entry, which has its time as "__ns" too."""
        place = (entry["__ns"], entry["insertId"])
        if place not in self._kept:
            self._kept[place] = StoredEntry(entry, time.monotonic() + delay_s)
            for newest_first, order in self._orders.items():
                insort(order, (-place[0] if newest_first else place[0], place[1]))

    def page(self, wanted: Filter, newest_first: bool, size: int, token: str) -> tuple[list[Json], str]:
        """Return matching entries that can be read by now, and the next token or "". Raise ValueError for a bad one."""
        order = self._order(newest_first)
        if token:
            ns, name = json.loads(base64.urlsafe_b64decode(token))
            start = bisect_right(order, (int(ns), str(name)))
        else:
            start = 0 if newest_first else bisect_left(order, (wanted.since, ""))
        end = bisect_left(order, (-wanted.since + 1, "")) if newest_first else len(order)
        now, found = time.monotonic(), list[Json]()
        for index in range(start, end):
            ns, name = order[index]
            kept = self._kept[-ns if newest_first else ns, name]
            if kept.seen <= now and wanted.holds(kept.entry):
                found.append(kept.entry)
                if len(found) == size:
                    more = index + 1 < end
                    return found, base64.urlsafe_b64encode(json.dumps(order[index]).encode()).decode() if more else ""
        return found, ""

    def _order(self, newest_first: bool) -> list[_Place]:
        if newest_first not in self._orders:
            places = ((-ns, name) for ns, name in self._kept) if newest_first else self._kept
            self._orders[newest_first] = sorted(places)
        return self._orders[newest_first]


_WATCH_S = 0.05


@dataclass
class Pending:
    """Operation that runs: what happens when it is `due`, once `ready` is true."""

    operation: str
    due: float
    end: Callable[[], None]
    ready: Callable[[], bool] = lambda: True


@dataclass
class World:
    """All state. Readers and writers hold `lock`."""

    home: Path
    token: str
    settle_s: float
    lock: threading.RLock = field(default_factory=threading.RLock)
    items: dict[str, Json] = field(default_factory=dict[str, Json])
    """Resources by API and name: "compute/projects/p/global/networks/n"."""
    policies: dict[str, Json] = field(default_factory=dict[str, Json])
    media: dict[str, bytes] = field(default_factory=dict[str, bytes])
    pending: list[Pending] = field(default_factory=list[Pending])
    ended: deque[str] = field(default_factory=deque[str])
    """Keys of ended operations, the oldest first."""
    plans: list[Plan] = field(default_factory=list[Plan])
    stockouts: set[str] = field(default_factory=set[str])
    """Machine types that cannot be had, "TYPE" or "ZONE/TYPE"."""
    failures: dict[str, str] = field(default_factory=dict[str, str])
    """Reasons why deletions could not be carried out, by name."""
    identity_pools: set[str] = field(default_factory=set[str])
    """Identity pools of clusters with workload identity, which outlive their clusters."""
    url: str = ""
    services: frozenset[str] | None = frozenset({"serviceusage.googleapis.com"})
    """APIs that are enabled from the start; None: all of them."""
    allowed: frozenset[str] | None = None
    """Permissions that the user's token has; None: all of them."""
    needed: set[str] = field(default_factory=set[str])
    """Permissions that its calls have needed."""
    preempt: dict[str, Callable[["World", str], None]] = field(
        default_factory=dict[str, Callable[["World", str], None]]
    )
    """Functions by API that preempt a machine, named by its key below the API; ApiError for an unknown one."""
    quota: dict[str, int] = field(default_factory=dict[str, int])
    """Limits of quotas, in chips for TPUs: {"tpu/us-central1-a/v5litepod": 16}; no entry, no limit."""
    requests: dict[str, Json] = field(default_factory=dict[str, Json])
    """Operations of calls that had a requestId, by method, resource and requestId."""
    logs: Logs = field(default_factory=Logs)
    log_lag_s: float = 0
    """Seconds until log entries of services about jobs can be read."""
    list_lag_s: float = 0
    """Seconds until lists of jobs show a change."""
    minute_s: float = 1
    """Seconds that a minute of a quota of calls lasts here."""
    runs: dict[str, Any] = field(default_factory=dict[str, Any])
    """Runs of resources by API and name, for as long as they run; each has a kill()."""
    live: dict[str, Any] = field(default_factory=dict[str, Any])
    """Objects of resources that are not JSON, by API and name: the tasks of a Batch job, a subscription's messages."""
    calls: dict[str, deque[float]] = field(default_factory=dict[str, deque[float]])
    """Times of calls that a quota counts, by what it counts."""
    history: dict[str, list[tuple[float, Json]]] = field(default_factory=dict[str, list[tuple[float, Json]]])
    """Earlier states of resources by API and name, and from when on (monotonic) lists show them; the newest last."""
    clock_us: int = 0
    _watcher: threading.Thread | None = None

    @cached_property
    def guests(self) -> Guests:
        return Guests(self.home, self.url, self.token_of, self.login)

    def token_of(self, email: str) -> str:
        """Return the token of a service account; the user's for one that was not created here."""
        return account_token(self.token, email) if email in self.accounts() else scope_token(self.token, "")

    def accounts(self) -> list[str]:
        return [each["email"] for each in self.below("iam", "projects/-/serviceAccounts")]

    def login(self, user: str) -> Json | None:
        """Return the OS Login profile in which a POSIX account has this user name."""
        with self.lock:
            profiles = self.below("oslogin", "users")
            named = [row for row in profiles if any(each["username"] == user for each in row.get("posixAccounts", []))]
            return next(iter(named), None)

    def number(self) -> int:
        """Return a new number, as long as those that Google generates. It is derived from the time, since folders of a
        killed Google in this home have that one's numbers."""
        with self.lock:
            return 4_000_000_000_000_000_000 + self.moment()

    def moment(self) -> int:
        """Return microseconds since 1970, later than at any call before."""
        self.clock_us = max(time.time_ns() // 1000, self.clock_us + 1)
        return self.clock_us

    def below(self, api: str, collection: str) -> list[Json]:
        """Return the resources of a collection, in the order of their names. "-" stands for any value."""
        parts = [re.escape(part) if part != "-" else "[^/]+" for part in collection.split("/")]
        wanted = re.compile(f"{api}/{'/'.join(parts)}/[^/]+")
        return [self.items[key] for key in sorted(self.items) if wanted.fullmatch(key)]

    def tick(self) -> None:
        now = time.monotonic()
        due = [row for row in self.pending if row.due <= now and row.ready()]
        over = {id(row) for row in due}
        self.pending = [row for row in self.pending if id(row) not in over]
        for row in sorted(due, key=lambda row: row.due):  # whoever looks late sees what would have happened in between
            row.end()

    def watch(self) -> None:
        """Tick in a thread, without requests, as long as something runs."""
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        goes_on = True
        while goes_on:
            time.sleep(_WATCH_S)
            with self.lock:
                goes_on = False
                try:
                    self.tick()
                    goes_on = bool(self.runs)
                finally:
                    if not goes_on:
                        self._watcher = None


@dataclass(frozen=True)
class Call:
    """One parsed request. `key` is the name below the version, without project numbers."""

    world: World
    api: str
    document: Document
    method: Method
    key: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Json
    url: str
    plan: Plan | None = None
    account: str = ""
    """E-mail of the service account that calls; "": the user, or a caller with the same rights."""

    @property
    def link(self) -> str:
        """Beginning of the resource's own link, up to its key."""
        return f"https://{'www.googleapis.com' if self.api == 'compute' else self.document.host}/{self.method.prefix}"

    @property
    def location(self) -> str:
        found = re.search(r"/(?:locations|zones|regions)/([^/]+)", self.key)
        return found[1] if found else "global"

    def find(self, key: str) -> Json | None:
        return self.world.items.get(f"{self.api}/{key}")


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Collection of a discovery document: the source of names, the values that it sets, and its refusals. `made`,
    `changed` and `leaving` run before anything is stored and raise ApiError; `made` completes the body. `settled` and
    `gone` run when the operation has ended: `settled` returns why it failed, or ""."""

    id: str
    schema: str
    name: str = "name"  # the property of the body, or with "?" of the query, that has the id
    wrap: str = ""  # the request's property that holds the body
    style: str = "direct"  # container, compute, longrunning, or direct: no operation
    kind: str = ""  # how operations name it: CREATE_<kind>
    full_name: bool = False  # `name` is the whole key
    state: tuple[str, str, str, str] | None = None  # property; while creating, after, while deleting
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    exists: str = "Resource '{key}' already exists"
    missing: str = "Resource '{key}' was not found"
    made: Callable[[Call, str, Json], None] = lambda call, key, item: None
    changed: Callable[[Call, Json, Json], None] = lambda call, item, news: None
    leaving: Callable[[Call, str], None] = lambda call, key: None
    settled: Callable[[Call, str], str | Failure] = lambda call, key: ""
    failed: Callable[[Call, str], None] = lambda call, key: None  # in its place, where a test plans a failure
    gone: Callable[[Call, str], str] = lambda call, key: ""
    ending: Callable[[Call, str], Callable[[], bool]] = lambda call, key: lambda: True
    listed: Callable[[Call], list[Json]] | None = None  # resources that are not stored, but known


def stamp() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def by_id(key: str) -> str:
    """Return the key with the project's id where a client gave its number."""
    return re.sub(rf"^projects/{PROJECT_NUMBER}(?=/|$)", f"projects/{PROJECT}", key)


def merge_patch(old: Any, new: Any) -> Any:
    """Return the result of a JSON merge patch (RFC 7396), which PATCH means in every API here."""
    if not isinstance(new, dict) or not isinstance(old, dict):
        return copy.deepcopy(new)
    made = {**old, **{name: merge_patch(old.get(name), item) for name, item in new.items()}}
    return {name: item for name, item in made.items() if item is not None}
