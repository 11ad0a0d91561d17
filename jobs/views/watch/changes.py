"""What `watch` says where there is no terminal: a line at each change."""

from dataclasses import dataclass, field

from accel.console.terminal_text import lasting, number, plain

from ...backends.base import JobRef, Phase
from ...client.observation import Board, Task, Watched
from .draw import dollars, reason_of

STEPS = 10
"""A job's own progress is said each time that it has done another tenth."""


@dataclass
class Changes:
    """Remembers what was said of each job."""

    _said: dict[JobRef, tuple[str, str, str]] = field(default_factory=dict[JobRef, tuple[str, str, str]])
    _tenths: dict[JobRef, int] = field(default_factory=dict[JobRef, int])

    def lines(self, board: Board, now: float) -> list[str]:
        """What is new. `now` is in seconds since 1970."""
        new: list[str] = []
        for ref, job in board.jobs.items():
            if job.status is None:
                continue
            said = (str(job.phase), reason_of(job), _tasks(job))
            if self._said.get(ref) != said:
                self._said[ref] = said
                new.append(_line(ref, [part for part in said if part] + _end(job, now)))
            new += self._progress(ref, job, now)
        return new

    def _progress(self, ref: JobRef, job: Watched, now: float) -> list[str]:
        fraction = job.fraction
        if fraction is None or job.size or job.phase is not Phase.RUNNING:
            return []
        tenths = int(fraction * STEPS)
        if self._tenths.get(ref) == tenths:
            return []
        self._tenths[ref] = tenths
        told = next((task for task in job.tasks.values() if task.metrics), None)
        eta = job.eta_s(now)
        parts = [f"{fraction:.0%} done", *(f"{name} {number(value)}" for name, value in _metrics(told))]
        parts += [f"gpu {job.use:.0f}%"] if job.use is not None else []
        parts += [f"memory busy {job.memory_use:.0f}%"] if job.memory_use is not None else []
        return [_line(ref, parts + ([f"{lasting(eta)} left"] if eta is not None else []))]


def _metrics(told: Task | None) -> list[tuple[str, float]]:
    return list(told.metrics.items())[:3] if told else []


def _tasks(job: Watched) -> str:
    counts = job.status.tasks if job.status else {}
    return " ".join(f"{native}:{count}" for native, count in counts.items())


def _end(job: Watched, now: float) -> list[str]:
    cost = job.cost(now) if job.phase and job.phase.ended and not job.free else None
    code = job.status.exit_code if job.status and job.phase is Phase.FAILED else None
    return [
        *([f"exit code {code}"] if code is not None and "exit code" not in reason_of(job) else []),
        *([f"cost {'at least ' if job.missed else ''}{dollars(*cost)}"] if cost else []),
    ]


def _line(ref: JobRef, parts: list[str]) -> str:
    return plain(f"{ref}: {', '.join(parts)}")
