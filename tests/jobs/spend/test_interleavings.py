"""Clients of one ledger, step by step in any order, some of which die: never more than the allowance is held, every job
has its hold, and in the end nothing is held for nothing.

Each client is a thread that stops before and after every call of the ledger and of the platform, until it is told to go
on; which one goes on is drawn. A client that dies does not come back from a call.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accel.contract.targets import LocalTarget
from accel.diagnostics.errors import CloudRefused, CloudSilent, JobsError
from jobs.backends.base import JobRef, Request
from jobs.client.allowances import reserve, settlement
from jobs.client.allowances.ledgers import FileLedger
from jobs.client.allowances.reservation import MICRO, Ledger
from jobs.client.allowances.reserve import Holding
from jobs.client.allowances.settlement import settle_team
from tests.jobs.spend.books import TEAM, Platform, allowances, wanted
from tests.support.soak import SOAK

LIMIT = 25
CALLS = ("balance", "read", "holds", "add", "change", "submit", "status")


class Died(BaseException):
    """The client's process is gone."""


class Turns:
    """Lets one client go on at a time."""

    def __init__(self) -> None:
        self._may = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._dies = False

    def pause(self) -> None:
        """Of the client: stops here. Raises Died."""
        self._stopped.release()
        self._may.acquire()
        if self._dies:
            raise Died

    def go_on(self, *, die: bool = False) -> None:
        """Of the test: lets the client run to its next stop or end."""
        self._dies = self._dies or die
        self._may.release()
        self._stopped.acquire()

    def first(self) -> None:
        self._stopped.acquire()

    def ended(self) -> None:
        self._stopped.release()


class Stepped:
    """Stops before and after each call of what it stands for."""

    def __init__(self, inner: Any, turns: Turns, ahead_s: Callable[[], float]) -> None:
        self._inner, self._turns, self._ahead_s = inner, turns, ahead_s

    def now(self) -> float:
        return self._inner.now() + self._ahead_s()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in CALLS:
            return found

        def call(*arguments: Any) -> Any:
            self._turns.pause()
            answer = found(*arguments)
            self._turns.pause()
            return answer

        return call


class Moody(Platform):
    """Does with a submit what was drawn for its key."""

    def __init__(self, folder: Path, moods: dict[str, str]) -> None:
        super().__init__(folder)
        self._moods = moods

    def submit(self, request: Request) -> JobRef:
        mood = self._moods.get(request.key, "")
        if mood == "refuses" and request.key not in self.made():
            raise CloudRefused("no")
        if mood == "lost":
            raise CloudSilent("not known")
        ref = super().submit(request)
        if mood == "made":
            raise CloudSilent("not known")
        return ref


class World:
    """Clients of one ledger in a folder."""

    def __init__(self, folder: Path, moods: dict[str, str]) -> None:
        self.platform = Moody(folder / "platform", moods)
        self.ledger = FileLedger("world")
        self.ahead_s = 0.0
        self.running: list[tuple[Turns, threading.Thread]] = []

    def start(self, work: Callable[[Ledger, Any], None]) -> None:
        turns = Turns()
        ledger: Any = Stepped(self.ledger, turns, lambda: self.ahead_s)

        def run() -> None:
            try:
                turns.pause()
                work(ledger, Stepped(self.platform, turns, lambda: 0))
            except (JobsError, Died):
                pass
            finally:
                self.running[:] = [each for each in self.running if each[0] is not turns]
                turns.ended()

        thread = threading.Thread(target=run, daemon=True)
        self.running.append((turns, thread))
        thread.start()
        turns.first()

    def submit(self, key: str, usd: int) -> None:
        def work(ledger: Ledger, platform: Any) -> None:
            sweep = lambda team: self._sweep(ledger, platform)  # noqa: E731
            with Holding(ledger, allowances(LIMIT), [wanted(key, usd)], sweep=sweep) as held:
                held.send(platform, wanted(key, usd).request)

        self.start(work)

    def settle(self) -> None:
        self.start(self._sweep)

    def _sweep(self, ledger: Ledger, platform: Any) -> None:
        settle_team(ledger, TEAM, {"gpu": LocalTarget()}, backend_of=lambda ref: platform, find=self.platform.find)

    def check(self, *, slept: bool) -> None:
        """What is true at every moment."""
        holds = self.ledger.holds(TEAM)
        used = sum(self.ledger.balance(TEAM, month).used for month in {each.period for each in holds})
        assert used == sum(each.used for each in holds)
        if not slept:
            assert used <= LIMIT * MICRO
            assert self.platform.made() <= {each.key for each in holds}


KEYS = ("a", "b", "c", "d")
STEP = st.one_of(
    st.tuples(st.just("submit"), st.sampled_from(KEYS), st.just(0)),
    st.tuples(st.just("settle"), st.just(""), st.just(0)),
    st.tuples(st.just("end"), st.sampled_from(KEYS), st.integers(0, 3600)),
    st.tuples(st.just("go"), st.just(""), st.integers(0, 5)),
    st.tuples(st.just("go"), st.just(""), st.integers(0, 5)),
    st.tuples(st.just("go"), st.just(""), st.integers(0, 5)),
    st.tuples(st.just("die"), st.just(""), st.integers(0, 5)),
)
COSTS = {"a": 10, "b": 10, "c": 10, "d": 20}


@pytest.mark.parametrize("sleeps", [False, True])
def test_any_order_of_steps(sleeps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sleeps`: leases may run out while clients are alive, as those of a laptop that sleeps: then a job may be made
    for which there is no room, and it is counted."""
    for module in (reserve, settlement):
        monkeypatch.setattr(module, "back_off", lambda longest_s: None)

    @settings(max_examples=2000 if SOAK else 30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        steps=st.lists(STEP, min_size=5, max_size=80),
        moods=st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["refuses", "lost", "made"])),
        sleep_at=st.integers(0, 80),
    )
    def play(steps: list[tuple[str, str, int]], moods: dict[str, str], sleep_at: int) -> None:
        with TemporaryDirectory() as folder:
            monkeypatch.setenv("XDG_STATE_HOME", folder)
            world = World(Path(folder), moods)
            for number, step in enumerate(steps):
                if sleeps and number == sleep_at:
                    world.ahead_s += 4000
                _do(world, *step)
                world.check(slept=sleeps)
            while world.running:
                world.running[0][0].go_on()
            world.check(slept=sleeps)
            world.ahead_s += 4000
            for _ in range(2):
                world.settle()
                while world.running:
                    world.running[0][0].go_on()
            holds = {each.key: each for each in world.ledger.holds(TEAM)}
            assert world.platform.made() == holds.keys()
            assert all(each.ref for each in holds.values())
            assert {key for key, each in holds.items() if each.open} == {
                key for key in world.platform.made() if not (world.platform.folder / key).read_text()
            }

    play()


def _do(world: World, what: str, key: str, number: int) -> None:
    match what:
        case "submit":
            world.submit(key, COSTS[key])
        case "settle":
            world.settle()
        case "end" if key in world.platform.made():
            world.platform.end(key, number)
        case "go" | "die" if world.running:
            world.running[number % len(world.running)][0].go_on(die=what == "die")
        case _:
            pass


def test_the_check_sees_a_ledger_that_is_overdrawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    world = World(tmp_path, {})
    monkeypatch.setattr(FileLedger, "add", lambda self, holds, limit, add=FileLedger.add: add(self, holds, None))
    for key in ("a", "d"):
        world.submit(key, COSTS[key])
    while world.running:
        # In step, so that each has seen the balance before the other writes.
        for turns, _ in list(world.running):
            turns.go_on()
    with pytest.raises(AssertionError):
        world.check(slept=False)
