"""Share of a core that `watch` needs for an array of 10,000 tasks, each of which reports a step every ten seconds. The
cloud is made up here: it answers at once, which leaves out what a real one's answers cost to read (the client of the
cloud's own, a few ms a call). Its lines come evenly, a thousand a second."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from accel.console.screen import Screen
from accel.console.terminal_text import Style
from jobs.backends.base import Backend, JobRef, LogLine, Phase, Status
from jobs.runtime.lines import format_line
from jobs.views.watch.loop import Watching

from .measure import Failed, Line

TASKS = 10_000
STEP_EVERY_S = 10
STEPS = 1000
SECONDS = 10
LIMIT = 15
REF = JobRef("made-up", "here", "array")


class Array:
    """A backend of one array, which ends when it has reported the steps of so many seconds. Half of its lines are no
    reports."""

    def __init__(self, seconds: int) -> None:
        self.begun = time.monotonic()
        self.most = seconds * TASKS // STEP_EVERY_S
        self.lines = 0

    @property
    def over(self) -> bool:
        return self.lines >= self.most

    def status(self, ref: JobRef) -> Status:
        done = TASKS if self.over else min(TASKS // 2, int(100 * (time.monotonic() - self.begun)))
        return Status(
            ref,
            "array-of-many",
            Phase.SUCCEEDED if self.over else Phase.RUNNING,
            "SUCCEEDED" if self.over else "RUNNING",
            tasks={"RUNNING": TASKS - done, "SUCCEEDED": done} if done < TASKS else {"SUCCEEDED": TASKS},
            created=datetime.now(UTC),
            started=datetime.now(UTC),
            target="made-up",
        )

    def logs(self, ref: JobRef, *, task: int | None = None, follow: bool = False) -> Iterator[LogLine]:
        """Yield lines at the pace of a real job, not as fast as they are taken."""
        sources = [f"task {number}" for number in range(TASKS)]
        while not self.over:
            due = min(self.most, int((time.monotonic() - self.begun) * TASKS / STEP_EVERY_S))
            while self.lines < due:
                number = self.lines % TASKS
                step = 1 + (self.lines // TASKS + number * 7) % STEPS
                gpus = [{"index": 0, "use": 90 + number % 10, "memory_mib": 40_000, "memory_total_mib": 81_559}]
                text = format_line(step=step, steps=STEPS, metrics={"loss": 1 / step, "acc": 0.5}, gpus=gpus)
                yield LogLine(datetime.now(UTC), text, sources[number])
                yield LogLine(datetime.now(UTC), f"epoch 1 batch {step} of {STEPS}", sources[number])
                self.lines += 1
            time.sleep(0.05)


def cpu_s(tasks: Array) -> float:
    """Return the seconds of a core that watching it takes, the making of the lines with it."""
    shown = io.StringIO()
    backend = cast(Backend, cast(Any, tasks))
    watching = Watching(
        [(REF, backend)], screen=Screen(shown, (160, 50)), style=Style(True, True), backend_of=lambda ref: backend
    )
    before = time.process_time()
    watching.run()
    used = time.process_time() - before
    if "array-of-many" not in shown.getvalue() or "slow: task" not in shown.getvalue():
        raise Failed("the array was not shown")
    return used


def measure(scratch: Path) -> Iterator[Line]:
    """Measure one run. On a busy machine it takes longer, and more frames are drawn: that makes it no better."""
    used = cpu_s(Array(SECONDS))
    name = f"watch of {TASKS:,} tasks, {TASKS // STEP_EVERY_S:,} steps told a second"
    yield Line(name, 100 * used / SECONDS, "% of a core", limit=LIMIT)
