"""Results of the tasks of jobs: their states, and the last metrics that their logs report."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from accel.console.progress import Opens
from accel.console.reporter import Reporter
from accel.diagnostics.errors import BadInput, CloudRefused, JobsError, NotFound
from accel.diagnostics.messages import did_you_mean, printable_name
from accel.threads import in_threads

from ..backends.base import Backend, JobRef, LogLine, Logs, Phase, Resubmit
from ..backends.registry import of_ref
from ..backends.tasks import ProgressLines, Tasks, TaskStatus
from ..model import sweep_tasks
from ..model.keys import submission_key
from ..runtime import lines

LOGS_SAID = 100
"""Number of logs from which a message says how many are read."""
AT_ONCE = 16
TOGETHER = ("local", "google-batch")
"""Kinds where one read gives the lines of all tasks. On Google Batch a read of each task would meet Cloud Logging's
limit of 60 a minute and project: https://docs.cloud.google.com/logging/quotas"""
FEW = 5
"""Number of tasks up to which each log is read by itself, on any platform."""

_TASK = re.compile(r"task (\d+)")


@dataclass
class Row:
    """A task, as it went in the last job that ran it."""

    job: JobRef
    place: int
    """Its number in that job."""
    index: int
    """Its number in the sweep, or else in the job."""
    params: dict[str, str]
    state: TaskStatus
    metrics: dict[str, float] = field(default_factory=dict[str, float])
    step: int | None = None
    unread: str | None = None
    """Reason why its log could not be read."""


@dataclass(frozen=True)
class Job:
    """A job with its sweep, or the part of one that it runs; `sweep` is None for a job without one."""

    ref: JobRef
    backend: Backend
    sweep: sweep_tasks.SweepPart | None


def find_jobs(refs: Iterable[JobRef], backend_of: Callable[[JobRef], Backend], say: Callable[[str], None]) -> list[Job]:
    """Return each job after those whose tasks it reruns, without forgotten ones. Raises NotFound for one of `refs`."""
    found: dict[JobRef, Job] = {}
    for ref in refs:
        chain: list[Job] = []
        wanted: JobRef | None = ref
        while wanted is not None and wanted not in found:
            try:
                job = _looked(wanted, backend_of(wanted))
            except NotFound as error:
                if not chain:
                    raise
                say(f"{chain[-1].ref} ran tasks of {wanted} again, of which nothing is left: {error.message}")
                break
            chain.append(job)
            first = job.sweep.first if job.sweep else None
            wanted = JobRef.parse(first) if first else None
        for job in reversed(chain):
            found[job.ref] = job
    return list(found.values())


def _looked(ref: JobRef, backend: Backend) -> Job:
    if not isinstance(backend, Resubmit):
        return Job(ref, backend, None)
    # The resubmit request has the contents of the original one.
    return Job(
        ref, backend, sweep_tasks.find_sweep(backend.resubmit_request(ref, submission_key(str(ref), "results")).body)
    )


def rows(jobs: Sequence[Job]) -> list[Row]:
    found: dict[tuple[str, int], Row] = {}
    for job in jobs:
        sweep = job.sweep
        for state in states(job.backend, job.ref):
            if sweep is None:
                found[str(job.ref), state.index] = Row(job.ref, state.index, state.index, {}, state)
            elif state.index < len(sweep.places):
                index = sweep.places[state.index]
                found[sweep.same, index] = Row(job.ref, state.index, index, sweep.params(index), state)
    return list(found.values())


def states(backend: Backend, ref: JobRef) -> Sequence[TaskStatus]:
    if isinstance(backend, Tasks):
        return backend.tasks(ref)
    seen = backend.status(ref)
    return [TaskStatus(0, seen.phase, seen.native, seen.attempts or 0, seen.exit_code, seen.reason)]


def failed_tasks(backend: Backend, ref: JobRef, count: int) -> list[int]:
    """Return which of a job's `count` tasks failed for good; once the job has ended, also those that never began."""
    ended = backend.status(ref).phase.ended
    seen = {state.index: state.phase for state in states(backend, ref)}
    missing = Phase.FAILED if ended else Phase.QUEUED
    return [index for index in range(count) if seen.get(index, missing) is Phase.FAILED]


def read(wanted: Sequence[Row], jobs: Sequence[Job], progress: Callable[[int], None] = lambda count: None) -> None:
    """Fill in the metrics, or why a log cannot be read."""
    by_ref = {job.ref: job for job in jobs}
    by_job: dict[JobRef, list[Row]] = {}
    for row in wanted:
        if row.state.phase is not Phase.QUEUED or row.state.attempts:
            by_job.setdefault(row.job, []).append(row)
    single: list[tuple[Backend, Row, bool]] = []
    done = 0
    for ref, each in by_job.items():
        job = by_ref[ref]
        if len(each) > FEW and _together(job.backend, ref, each):
            progress(done := done + len(each))
        else:
            alone = _alone(job)
            single += [(job.backend, row, alone) for row in each]
    if not single:
        return
    # The first call creates the clients; several threads may use them from then on.
    _one(single[0])
    progress(done := done + 1)
    for _ in in_threads(_one, single[1:], AT_ONCE):
        progress(done := done + 1)


def _alone(job: Job) -> bool:
    """Tell whether the platform does not distinguish tasks of the job."""
    return len(job.sweep.places) == 1 if job.sweep else not job.backend.status(job.ref).tasks


def _one(each: tuple[Backend, Row, bool]) -> None:
    backend, row, alone = each
    try:
        printed = _logs(backend, row.job, None if alone else row.place)
        _told({row.place: row}, ((row.place, line) for line in printed))
    except JobsError as error:
        row.unread = error.message


def _logs(backend: Backend, ref: JobRef, task: int | None) -> Iterator[LogLine]:
    if not isinstance(backend, Logs):
        raise BadInput(f"jobs of kind {ref.kind} keep no log that can be read here")
    return backend.logs(ref, task=task)


def _together(backend: Backend, ref: JobRef, each: Sequence[Row]) -> bool:
    """Return False where the platform or its permissions do not let one read give the lines of all tasks."""
    of = {row.place: row for row in each}
    marked = isinstance(backend, ProgressLines)
    if not marked and ref.kind not in TOGETHER:
        return False
    try:
        _told(of, backend.progress_lines(ref, sorted(of)) if marked else _placed(_logs(backend, ref, None)))
    except JobsError as error:
        if marked and isinstance(error, CloudRefused):
            return False  # each log by itself may be allowed
        for row in each:
            row.unread = error.message
    return True


def _placed(printed: Iterator[LogLine]) -> Iterator[tuple[int, LogLine]]:
    for line in printed:
        if task := _TASK.match(line.source):
            yield int(task[1]), line


def _told(of: Mapping[int, Row], printed: Iterable[tuple[int, LogLine]]) -> None:
    """Put the last reported value of each metric into the task's row."""
    for place, line in printed:
        told = lines.read(line.text) if lines.MARK in line.text else None
        row = of.get(place)
        if told is None or row is None:
            continue
        row.metrics |= {name: value for name, value in _pairs(told.get("metrics")) if _is_number(value)}
        step = told.get("step")
        row.step = step if isinstance(step, int) else row.step
        row.params = row.params or {name: str(value) for name, value in _pairs(told.get("params"))}


def _pairs(value: object) -> Iterable[tuple[str, Any]]:
    return cast("dict[str, Any]", value).items() if isinstance(value, dict) else ()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def rank(found: Iterable[Row], metric: str | None, best: str | None) -> list[Row]:
    """Sort by the metric, the best first and tasks without it last; without a metric, by number."""
    in_order = sorted(found, key=lambda row: (str(row.job) if not row.params else "", row.index))
    if metric is None:
        return in_order
    sign = -1 if best == "max" else 1
    return sorted(in_order, key=lambda row: (metric not in row.metrics, sign * row.metrics.get(metric, 0.0)))


def ranking(
    refs: Sequence[JobRef],
    by: str | None,
    best: str | None,
    reporter: Reporter,
    progress: Opens,
) -> tuple[list[Row], str | None]:
    """Return the tasks, the best first, and the metric of that order. Raises BadInput for one that no task reported."""
    seen = find_jobs(refs, of_ref, reporter.say)
    metric, best = _objective(seen, by, best)
    found = rows(seen)
    if len(found) >= LOGS_SAID:
        reporter.say(f"reading the logs of {len(found):,} tasks")
    with progress(lambda count: f"{count:,} of {len(found):,} logs") as told:
        read(found, seen, told)
    _say_unread(found, reporter)
    if metric is not None:
        _known(metric, found, reporter)
    return rank(found, metric, best), metric


def _objective(jobs: Sequence[Job], by: str | None, best: str | None) -> tuple[str | None, str | None]:
    """Return the metric and `max` or `min`, or None for both. Raises BadInput where only one of them is known."""
    told: list[Mapping[str, str]] = [
        job.sweep.spec["objective"] for job in jobs if job.sweep and "objective" in job.sweep.spec
    ]
    own = told[-1] if told else None
    if by is None:
        if own is None and best is not None:
            raise BadInput(f"--{best}: of which metric? the sweep has no objective", "--by METRIC names one")
        return (own["metric"], best or own["best"]) if own else (None, None)
    if best is None and (own is None or own["metric"] != by):
        raise BadInput(f"--by {by}: is the highest best, or the lowest?", f"--by {by} --max, or --by {by} --min")
    return by, best or (own["best"] if own else None)


def _known(metric: str, found: Sequence[Row], reporter: Reporter) -> None:
    """Raise BadInput for a metric that no task reported, where tasks reported others."""
    told = sorted({name for row in found for name in row.metrics})
    if told and metric not in told:
        raise BadInput(f"metric {printable_name(metric)}: no task reported it{did_you_mean(metric, told)}")
    if not told:
        reporter.say("no task has reported metrics; lines that begin with @accel report them (docs/sweeps.md)")


def _say_unread(found: Sequence[Row], reporter: Reporter) -> None:
    unread = [row for row in found if row.unread]
    if unread:
        reporter.say(f"{len(unread):,} of {len(found):,} logs could not be read, the first of them: {unread[0].unread}")
