"""The loop of `watch`: look at jobs and read their logs in threads, and show the results until all have ended."""

import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import click

from accel.clouds.pauses import Pauses
from accel.console.errors import say
from accel.console.screen import Screen
from accel.console.terminal_text import Style, clip
from accel.diagnostics.errors import JobsError, WaitedTooLong

from ...backends.base import Attempts, Backend, JobRef, Logs, Phase, Status
from ...backends.registry import of_ref
from ...client.accrued_cost import JobPrice
from ...client.observation import Board
from ...client.progress import parse
from ...client.wait_reasons import Pending
from ...client.waiting import interruption, look_at, pause
from .draw import Changes, Frame, draw

Jobs = list[tuple[JobRef, Backend]]
Event = Callable[[Board], None]

FOLLOWED_MAX = 32
"""Most logs that are read at once; the other jobs show no progress until one of those has ended."""
DRAIN_S = 10.0
"""Seconds to wait for last log lines after the end of all jobs."""
LOOK_FOR_MORE_S = 30.0
FRAME_S = 1.0
SAID_SHOWN = 3


@dataclass
class Watching:
    """A watch and its options. `more` returns the jobs that exist by now; `priced` returns their prices."""

    jobs: Jobs
    more: Callable[[], Jobs] | None = None
    priced: Callable[[Iterable[JobRef]], dict[JobRef, JobPrice]] = lambda refs: {}
    logs: bool = True
    screen: Screen | None = None
    """Screen for a table; None prints a line at each change with `plain`, and nothing otherwise."""
    plain: bool = True
    style: Style = field(default_factory=Style)
    timeout_s: float | None = None
    backend_of: Callable[[JobRef], Backend] = of_ref
    frame_s: float = FRAME_S

    def run(self) -> list[Status]:
        """Watch until every job has ended, and return the last statuses. Raises Interrupted and WaitedTooLong, which
        say that the jobs go on, NotFound, NoCredentials or CloudRefused."""
        self._events: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        self._board, self._changes = Board(), Changes()
        self._said: list[str] = []
        self._followed: dict[JobRef, threading.Thread] = {}
        self._over = threading.Event()
        for ref, _ in self.jobs:
            self._board.job(ref)
        self._price([ref for ref, _ in self.jobs])
        looking = threading.Thread(target=self._caught, args=(self._look,), daemon=True)
        looking.start()
        try:
            self._until_the_end(looking)
        except KeyboardInterrupt:
            raise interruption(self._left()) from None
        finally:
            self._over.set()
        return [job.status for job in self._board.jobs.values() if job.status]

    def _until_the_end(self, looking: threading.Thread) -> None:
        pauses = Pauses(self.timeout_s)
        drained: float | None = None
        while True:
            self._take(time.monotonic() + self.frame_s)
            self._follow()
            if not looking.is_alive() and self._events.empty():
                reading = any(
                    thread.is_alive() and not self._board.jobs[ref].is_told for ref, thread in self._followed.items()
                )
                drained = drained or time.monotonic() + DRAIN_S
                if not reading or time.monotonic() > drained:
                    self._take(0)
                    self._show()
                    return
            self._show()
            if pauses.left_s == 0:
                first = self._left()[0][0]
                raise WaitedTooLong(f"{first}: has not ended within {self.timeout_s:g} s; it goes on")

    def _left(self) -> Jobs:
        left = [job.ref for job in self._board.jobs.values() if not (job.phase and job.phase.ended)]
        return [(ref, self.backend_of(ref)) for ref in left or self._board.jobs]

    def _take(self, until: float) -> None:
        """Handle the events of the threads until then; at least those that have arrived."""
        while True:
            left = until - time.monotonic()
            try:
                event = self._events.get(timeout=left) if left > 0 else self._events.get_nowait()
            except queue.Empty:
                return
            if isinstance(event, BaseException):
                raise event
            event(self._board)

    def _show(self) -> None:
        now = time.time()
        if self.screen is None:
            for line in self._changes.lines(self._board, now) if self.plain else ():
                click.echo(self.style.clean(line))
            return
        columns, rows = self.screen.size
        said = [clip(self.style.clean(line), columns, self.style) for line in self._said[-SAID_SHOWN:]]
        rows_left = max(rows - len(said), 1)
        self.screen.show([*draw(self._board, Frame(columns, rows_left, now, self.style)), *said][:rows])

    def _tell(self, text: str) -> None:
        if self.screen is None:
            say(text)
        else:
            self._events.put(lambda board: self._said.append(text))

    def _price(self, refs: Iterable[JobRef]) -> None:
        for ref, price in self.priced(refs).items():
            job = self._board.job(ref)
            job.rate, job.free, job.target = price.rate, price.free, price.target

    # The thread that looks at jobs.

    def _caught(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - raised where it is seen
            self._events.put(error)

    def _look(self) -> None:
        waiting = list(self.jobs)
        known = {ref for ref, _ in waiting}
        tried: dict[JobRef, int] = {}
        unseen: set[JobRef] = set()
        states: dict[JobRef, tuple[str, str]] = {}
        pending = Pending(self._tell)
        pauses, looked_for_more = Pauses(), time.monotonic()
        while not self._over.is_set():
            for ref, backend, status in look_at(waiting, unseen, self._tell):
                if states.get(ref) != (status.phase, status.native):
                    states[ref] = (status.phase, status.native)
                    pauses.restart()
                self._saw(ref, backend, status, tried)
                pending.look(ref, backend, status)
                if status.phase.ended:
                    waiting.remove((ref, backend))
            if self.more and (not waiting or time.monotonic() - looked_for_more > LOOK_FOR_MORE_S):
                looked_for_more = time.monotonic()
                new = [(ref, backend) for ref, backend in self.more() if ref not in known]
                known |= {ref for ref, _ in new}
                waiting += new
                if new:
                    self._events.put(lambda board, new=new: self._price(board.job(ref).ref for ref, _ in new))
            if not waiting:
                return
            self._over.wait(pause(pauses, waiting))

    def _saw(self, ref: JobRef, backend: Backend, status: Status, tried: dict[JobRef, int]) -> None:
        now = time.time()
        self._events.put(lambda board: board.job(ref).saw(status, now))
        if (status.attempts or 0) > 1 and not status.tasks and isinstance(backend, Attempts):
            mark = 2 * (status.attempts or 0) + status.phase.ended
            if tried.get(ref) != mark:
                tried[ref] = mark
                try:
                    attempts = tuple(backend.attempts(ref))
                except JobsError as error:
                    self._tell(f"{ref}: its earlier attempts cannot be seen: {error.message}")
                    return
                self._events.put(lambda board: setattr(board.job(ref), "attempts", attempts))

    # Threads that read logs.

    def _follow(self) -> None:
        if not self.logs:
            return
        reading = sum(thread.is_alive() for thread in self._followed.values())
        for ref, job in self._board.jobs.items():
            if reading >= FOLLOWED_MAX:
                return
            if ref not in self._followed and job.phase not in (None, Phase.QUEUED, Phase.STARTING):
                thread = threading.Thread(target=self._caught, args=(lambda ref=ref: self._read(ref),), daemon=True)
                self._followed[ref] = thread
                thread.start()
                reading += 1

    def _read(self, ref: JobRef) -> None:
        # A backend of its own: two threads must not create one backend's clients at once.
        backend = self.backend_of(ref)
        if not isinstance(backend, Logs):
            return
        try:
            for line in backend.logs(ref, follow=True):
                if self._over.is_set():
                    return
                if (told := parse(line.text)) is not None:
                    self._events.put(
                        lambda board, source=line.source, told=told: board.job(ref).heard(source, told, board.places)
                    )
        except JobsError as error:
            self._tell(f"{ref}: its log cannot be read: {error.message}")
