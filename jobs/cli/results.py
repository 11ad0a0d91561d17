"""`jobs results`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from accel.console.options import FORMATS, OneOf, Settings
from accel.console.output import show
from accel.console.progress import Progress
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput
from accel.diagnostics.messages import did_you_mean, name_shown

from ..client.sweep_results import looked, ranked, read, rows

if TYPE_CHECKING:
    from accel.console.progress import Opens
    from accel.console.reporter import Voice

    from ..backends.base import JobRef
    from ..client.sweep_results import Job, Row

CSV = "csv"
_OWN = ("task", "state", "attempts", "exit_code", "step", "job", "job_task", "reason")
SAID = 100
"""From so many logs on it is said how many are read."""


class Results(Verb):
    """A verb whose output may be CSV too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for param in self.params:
            if param.name == "output":
                param.type = OneOf(*FORMATS, CSV)


@click.command(cls=Results)
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
@click.option("--by", metavar="METRIC", help="Rank by this metric; without it, by the sweep's objective.")
@click.option("--max", "best", flag_value="max", help="The highest is best.")
@click.option("--min", "best", flag_value="min", help="The lowest is best.")
@click.pass_obj
def results(settings: Settings, jobs: tuple[str, ...], by: str | None, best: str | None) -> None:
    """Show what the tasks of JOB came to: parameters, state, and the last metrics that each told; the best first.

    Of a job that runs tasks of another one again, the other tasks are the other one's. Several JOBs are one table.
    """
    from ..client.resolve import reference

    found, metric = ranking([reference(text, settings) for text in jobs], by, best, settings, Progress)
    _shown(found, metric, settings)


def ranking(
    refs: "Sequence[JobRef]",
    by: str | None,
    best: str | None,
    voice: "Voice",
    progress: "Opens",
) -> "tuple[list[Row], str | None]":
    """The tasks of the jobs, the best first, and by what metric. Raises BadInput for one that nobody told."""
    from ..backends.registry import of_ref

    seen = looked(refs, of_ref, voice.say)
    metric, best = _objective(seen, by, best)
    found = rows(seen)
    if len(found) >= SAID:
        voice.say(f"reading the logs of {len(found):,} tasks")
    with progress(lambda count: f"{count:,} of {len(found):,} logs") as told:
        read(found, seen, told)
    _say_unread(found, voice)
    if metric is not None:
        _known(metric, found, voice)
    return ranked(found, metric, best), metric


def _objective(jobs: "Sequence[Job]", by: str | None, best: str | None) -> tuple[str | None, str | None]:
    """The metric, and whether the highest or the lowest is best. Raises BadInput where that is not said."""
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


def _known(metric: str, found: "Sequence[Row]", voice: "Voice") -> None:
    """Raises BadInput for a metric that no task told, where they told others."""
    told = sorted({name for row in found for name in row.metrics})
    if told and metric not in told:
        raise BadInput(f"metric {name_shown(metric)}: no task told it{did_you_mean(metric, told)}")
    if not told:
        voice.say("no task has told metrics; a program does so by lines that begin with @accel (docs/sweeps.md)")


def _say_unread(found: "Sequence[Row]", voice: "Voice") -> None:
    unread = [row for row in found if row.unread]
    if unread:
        voice.say(f"{len(unread):,} of {len(found):,} logs could not be read, the first of them: {unread[0].unread}")


def _shown(found: "Sequence[Row]", metric: str | None, settings: Settings) -> None:
    params = list(dict.fromkeys(name for row in found for name in row.params))
    told = sorted({name for row in found for name in row.metrics}, key=lambda name: (name != metric, name))
    # A parameter may have a metric's name, and either that of a column of ours.
    given = {name: f"{name} (parameter)" if name in _OWN else name for name in params}
    columns = {name: f"{name} (metric)" if name in (*params, *_OWN) else name for name in told}
    if settings.output in ("json", "jsonl"):
        show([_json(row) for row in found], settings.output, (), (), "task")
        return
    whole = settings.output == CSV
    flat = [_flat(row, given, columns, exact=whole) for row in found]
    short = ("task", *given.values(), "state", "attempts", *columns.values())
    wide = (
        "task",
        *given.values(),
        "state",
        "attempts",
        "exit_code",
        *columns.values(),
        "step",
        "job",
        "job_task",
        "reason",
    )
    if whole:
        _csv(flat, wide)
    else:
        show(flat, settings.output, short, wide, "task")


def _json(row: "Row") -> dict[str, Any]:
    state = row.state
    return {
        "task": row.index,
        "job": str(row.job),
        "job_task": row.place,
        "params": row.params,
        "state": str(state.phase),
        "attempts": state.attempts,
        "exit_code": state.exit_code,
        "reason": state.reason,
        "step": row.step,
        "metrics": row.metrics,
    }


def _flat(row: "Row", given: Mapping[str, str], columns: Mapping[str, str], *, exact: bool) -> dict[str, Any]:
    told = _json(row)
    params = {given[name]: value for name, value in row.params.items()}
    metrics = {columns[name]: value if exact else f"{value:.6g}" for name, value in row.metrics.items()}
    return {name: told[name] for name in _OWN} | params | metrics


def _csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    import csv
    import io

    text = io.StringIO()
    written = csv.writer(text, lineterminator="\n")
    written.writerow(columns)
    written.writerows([["" if row.get(name) is None else row[name] for name in columns] for row in rows])
    click.echo(text.getvalue(), nl=False)
