"""The output of `watch` as lines: a table at a terminal, elsewhere a line at each change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from accel.console.columns import line, widths
from accel.console.terminal_text import Style, bar, clip, colour_of, lasting, number, plain

from ...backends.base import JobRef, Phase
from ...client.observation import Board, Task, WatchedJob
from ...client.progress import ago

SHOWN_TASKS = 5
"""Most tasks of an array that are shown, the least advanced first; of nodes, all up to NODES_SHOWN."""
NODES_SHOWN = 16
BAR = 12
NAME_MAX = 28
SILENT_S = 300
"""Time without a report after which a task is called silent."""
COLOURS = {
    Phase.QUEUED: "yellow",
    Phase.STARTING: "cyan",
    Phase.RUNNING: "green",
    Phase.SUCCEEDED: "blue",
    Phase.FAILED: "red",
}
STEPS = 10
"""Steps of progress that each get a line without a terminal: tenths."""
_ORDER = (Phase.RUNNING, Phase.STARTING, Phase.QUEUED, None, Phase.FAILED, Phase.SUCCEEDED)
"""Order of jobs; the last are left out where there is no room for all."""


@dataclass(frozen=True)
class Frame:
    """Size and time of a drawing. `now` is in seconds since 1970."""

    columns: int
    rows: int
    now: float
    style: Style


@dataclass(frozen=True)
class _Column:
    title: str
    text: Callable[[WatchedJob, Frame], str]
    most: int
    keep: int
    """Rank; the lowest is left out first where there is no room."""
    right: bool = False


def draw(board: Board, frame: Frame) -> list[str]:
    """Return at most `frame.rows` lines of at most `frame.columns` columns."""
    jobs = sorted(board.jobs.values(), key=lambda job: _ORDER.index(job.phase))
    lines = [frame.style.paint(clip(_summary(board, frame), frame.columns, frame.style), "bold")]
    if jobs:
        shown, table = _rows(jobs, frame)
        lines += table
        if shown < len(jobs):
            lines.append(clip(f"and {len(jobs) - shown:,} more jobs", frame.columns, frame.style))
    return lines[: max(frame.rows, 1)]


@dataclass
class Changes:
    """Output without a terminal: a line at each change. Remembers the last line of each job."""

    _said: dict[JobRef, tuple[str, str, str]] = field(default_factory=dict[JobRef, tuple[str, str, str]])
    _tenths: dict[JobRef, int] = field(default_factory=dict[JobRef, int])

    def lines(self, board: Board, now: float) -> list[str]:
        """Return the new lines. `now` is in seconds since 1970."""
        new: list[str] = []
        for ref, job in board.jobs.items():
            if job.status is None:
                continue
            said = (str(job.phase), reason_of(job), _task_counts(job))
            if self._said.get(ref) != said:
                self._said[ref] = said
                new.append(_change(ref, [part for part in said if part] + _outcome(job, now)))
            new += self._progress(ref, job, now)
        return new

    def _progress(self, ref: JobRef, job: WatchedJob, now: float) -> list[str]:
        fraction = job.fraction
        if fraction is None or job.size or job.phase is not Phase.RUNNING:
            return []
        tenths = int(fraction * STEPS)
        if self._tenths.get(ref) == tenths:
            return []
        self._tenths[ref] = tenths
        told = next((task for task in job.tasks.values() if task.metrics), None)
        eta = job.eta_s(now)
        parts = [f"{fraction:.0%} done", *(_first_metrics(told) if told else ())]
        parts += [f"gpu {job.use:.0f}%"] if job.use is not None else []
        parts += [f"memory busy {job.memory_use:.0f}%"] if job.memory_use is not None else []
        return [_change(ref, parts + ([f"{lasting(eta)} left"] if eta is not None else []))]


def _rows(jobs: Sequence[WatchedJob], frame: Frame) -> tuple[int, list[str]]:
    """Return the number of jobs that fit, and their lines with the header."""
    room = max(frame.rows - 3, 1)
    shown = jobs[:room]
    cells = [[frame.style.clean(column.text(job, frame)) for column in _COLUMNS] for job in shown]
    sizes = widths(_COLUMNS, cells, frame.columns, _PHASE)
    titles = [column.title for column in _COLUMNS]
    lines = [frame.style.paint(line(_COLUMNS, titles, sizes, frame.style), "dim")]
    below = max(0, room - len(shown))
    for job, row in zip(shown, cells, strict=True):
        lines.append(line(_COLUMNS, row, sizes, frame.style, {_PHASE: COLOURS[job.phase] if job.phase else ""}))
        more = _below(job, frame)[:below]
        below -= len(more)
        lines += more
    return len(shown), lines


def _below(job: WatchedJob, frame: Frame) -> list[str]:
    lines: list[tuple[str, str]] = []
    if reason := reason_of(job):
        lines.append((reason, "red" if job.phase is Phase.FAILED else "yellow"))
    if job.size:
        counts = job.status.tasks if job.status else {}
        lines.append(("tasks: " + ", ".join(f"{count:,} {native}" for native, count in counts.items()), ""))
        lines += [(f"slow: {_task(task, 'task', frame)}", "") for task in job.slowest(SHOWN_TASKS)]
    elif len(job.tasks) > 1:
        nodes = sorted(job.tasks.values(), key=lambda task: -1 if task.number is None else task.number)
        lines += [(_task(task, "node", frame), colour_of(task.number)) for task in nodes[:NODES_SHOWN]]
    clean, style = frame.style.clean, frame.style
    return [style.paint(clip(f"  {clean(text)}", frame.columns, style), colour) for text, colour in lines]


def reason_of(job: WatchedJob) -> str:
    """Return why the job does not run: the platform's own words, and their explanation."""
    status = job.status
    if status is None or status.phase is Phase.SUCCEEDED:
        return job.note
    native = status.reason or ("" if status.native.upper() == str(status.phase) else status.native)
    words = "" if status.phase is Phase.RUNNING and not status.reason else native
    return ": ".join(dict.fromkeys(part for part in (words, job.note) if part))


def _task(task: Task, word: str, frame: Frame) -> str:
    place = "" if task.number is None else f"{word} {task.number}  "
    again = f"attempt {task.attempt}  " if task.attempt > 1 else ""
    done = "" if task.fraction is None else f"{bar(task.fraction, BAR, frame.style)} {task.fraction:4.0%}  "
    use = "" if task.use is None else f"gpu {gpu_use(task)}  "
    quiet = frame.now - task.at
    silent = f"silent, last line {ago(quiet)}" if quiet > SILENT_S else ""
    return f"{place}{again}{done}{_metrics(task)}{'  ' if task.metrics else ''}{use}{silent}".rstrip()


def _summary(board: Board, frame: Frame) -> str:
    counts = ", ".join(f"{count:,} {phase.lower()}" for phase, count in board.counts().items())
    jobs = f"{len(board.jobs):,} job{'' if len(board.jobs) == 1 else 's'}"
    known = [cost for job in board.jobs.values() if (cost := job.cost(frame.now)) is not None]
    spent = f"  {dollars(sum(low for low, _ in known), sum(high for _, high in known))}" if any(map(any, known)) else ""
    clock = datetime.fromtimestamp(frame.now, UTC).strftime("%H:%M:%S UTC")
    return f"{jobs}{f': {counts}' if counts else ''}{spent}  {clock}"


def _progress(job: WatchedJob, frame: Frame) -> str:
    done = 1.0 if job.phase is Phase.SUCCEEDED else job.fraction
    return "" if done is None else f"{bar(done, BAR, frame.style)} {done:4.0%}"


def _last(job: WatchedJob, frame: Frame) -> str:
    """Return the last metrics of the only task; for several nodes, those of the first."""
    if job.size:
        return ""
    told = [task for task in job.tasks.values() if task.metrics]
    return _metrics(min(told, key=lambda task: task.number or 0)) if told else ""


def _metrics(task: Task) -> str:
    return " ".join(_first_metrics(task))


def _first_metrics(task: Task) -> list[str]:
    return [f"{name} {number(value)}" for name, value in list(task.metrics.items())[:3]]


def _use(job: WatchedJob, frame: Frame) -> str:
    return "" if job.use is None or (job.phase and job.phase.ended) else gpu_use(job)


def gpu_use(whose: Task | WatchedJob) -> str:
    busy = "" if whose.memory_use is None else f"/{whose.memory_use:.0f}%"
    return f"{whose.use:.0f}%{busy}"


def _cost(job: WatchedJob, frame: Frame) -> str:
    cost = job.cost(frame.now)
    return "" if cost is None or job.free else f"{'>' if job.missed else ''}{dollars(*cost)}"


def dollars(low: float, high: float) -> str:
    first, last = f"${low:,.2f}", f"{high:,.2f}"
    return first if first == f"${last}" else f"{first}..{last}"


def _eta(job: WatchedJob, frame: Frame) -> str:
    eta = job.eta_s(frame.now)
    return "" if eta is None else lasting(eta)


def _age(job: WatchedJob, frame: Frame) -> str:
    status = job.status
    since = None if status is None else status.started or status.created
    if status is None or since is None:
        return ""
    return lasting((status.stopped.timestamp() if status.stopped else frame.now) - since.timestamp())


def _task_counts(job: WatchedJob) -> str:
    counts = job.status.tasks if job.status else {}
    return " ".join(f"{native}:{count}" for native, count in counts.items())


def _outcome(job: WatchedJob, now: float) -> list[str]:
    cost = job.cost(now) if job.phase and job.phase.ended and not job.free else None
    code = job.status.exit_code if job.status and job.phase is Phase.FAILED else None
    return [
        *([f"exit code {code}"] if code is not None and "exit code" not in reason_of(job) else []),
        *([f"cost {'at least ' if job.missed else ''}{dollars(*cost)}"] if cost else []),
    ]


def _change(ref: JobRef, parts: list[str]) -> str:
    return plain(f"{ref}: {', '.join(parts)}")


_COLUMNS = (
    _Column("NAME", lambda job, frame: job.name, NAME_MAX, 0),
    _Column("TARGET", lambda job, frame: (job.status and job.status.target) or job.target or job.ref.kind, 20, 2),
    _Column("PHASE", lambda job, frame: str(job.phase or "?"), 9, 0),
    _Column("TIME", _age, 9, 5, right=True),
    _Column("PROGRESS", _progress, BAR + 5, 7),
    _Column("METRICS", _last, 48, 3),
    _Column("GPU", _use, 9, 4, right=True),
    _Column("COST", _cost, 24, 6, right=True),
    _Column("ETA", _eta, 9, 8, right=True),
)
_PHASE = 2
