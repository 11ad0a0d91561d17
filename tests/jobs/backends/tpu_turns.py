"""Clients that look after TPUs at the same time, call by call, and one that is killed at a call."""

import threading
from collections.abc import Callable, Iterable

from tests.jobs.backends.tpu_world import Crash, World


def killer(crash: int, after: bool) -> Callable[[bool], None]:
    """Kills the client at its call of that number, before its effect or after it."""
    count = 0

    def gate(done: bool) -> None:
        nonlocal count
        count += not done
        if (count, done) == (crash, after):
            raise Crash

    return gate


class Turns:
    """Clients in threads of their own, of which one at a time makes its next call."""

    def __init__(self, count: int) -> None:
        self._changed = threading.Condition()
        self._waiting: set[int] = set()
        self._left = set(range(count))
        self._turn: tuple[int, bool] | None = None
        self.well: set[int] = set()
        """Those that came to their end, or were killed."""

    def gate(self, client: int) -> Callable[[bool], None]:
        def wait(after: bool) -> None:
            if after:
                return
            with self._changed:
                self._waiting.add(client)
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._turn is not None and self._turn[0] == client)
                dies = self._turn is not None and self._turn[1]
                self._turn = None
                self._waiting.discard(client)
            if dies:
                raise Crash

        return wait

    def run(self, client: int, work: Callable[[], object]) -> None:
        try:
            work()
            self.well.add(client)
        except Crash:
            self.well.add(client)
        finally:
            with self._changed:
                self._left.discard(client)
                self._changed.notify_all()

    def next(self, choice: int, dies: bool) -> bool:
        """Lets one of those that wait make its call. Whether there was one."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._waiting == self._left, 60)
            if not self._waiting:
                return False
            self._turn = sorted(self._waiting)[choice % len(self._waiting)], dies
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._turn is None and self._waiting == self._left, 60)
            return True

    def play(
        self,
        client: Callable[[Callable[[bool], None]], None],
        bursts: Iterable[tuple[int, int, str]],
        happens: Callable[[str, int], None],
    ) -> None:
        """Runs every client to its end. A burst is who calls, how often, and what happens then (`die`: to the client
        that is next); `happens` is told of it, and of who called."""
        threads = [
            threading.Thread(target=self.run, args=(i, lambda i=i: client(self.gate(i))), daemon=True)
            for i in sorted(self._left)
        ]
        clients = set(self._left)
        for thread in threads:
            thread.start()
        for choice, count, event in bursts:
            for _ in range(count):
                self.next(choice, False)
            if event == "die":
                self.next(choice, True)
            happens(event, choice)
        while self.next(0, False):
            pass
        for thread in threads:
            thread.join(60)
        assert self.well == clients


def cloud(world: World, event: str) -> None:
    """Moves the first request on, or takes its TPU away."""
    for name in sorted(world.requests)[:1]:
        if event == "go on":
            world.go_on(name)
        elif event == "take away" and world.requests[name]["state"]["state"] != "DELETING":
            world.move(name, "SUSPENDED")
