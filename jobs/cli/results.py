"""`jobs results`."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from accel.console.options import FORMATS, OneOf, Settings
from accel.console.output import show
from accel.console.progress import Progress
from accel.console.verb import Verb

from ..client.resolve import reference
from ..client.results import ranking

if TYPE_CHECKING:
    from ..client.results import Row

CSV = "csv"
_OWN = ("task", "state", "attempts", "exit_code", "step", "job", "job_task", "reason")


class Results(Verb):
    """Verb whose output may also be CSV."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for param in self.params:
            if param.name == "output":
                param.type = OneOf(*FORMATS, CSV)


@click.command(cls=Results)
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
@click.option("--by", metavar="METRIC", help="Rank by this metric. Default: the sweep's objective.")
@click.option("--max", "best", flag_value="max", help="Rank the highest value first.")
@click.option("--min", "best", flag_value="min", help="Rank the lowest value first.")
@click.pass_obj
def results(settings: Settings, jobs: tuple[str, ...], by: str | None, best: str | None) -> None:
    """Show the results of the tasks of JOB, best first: parameters, state, and the last value of each metric.

    A job that reruns tasks of another job includes the other tasks of that job. Several JOBs share one table.
    """
    found, metric = ranking([reference(text, settings) for text in jobs], by, best, settings, Progress)
    _shown(found, metric, settings)


def _shown(found: "Sequence[Row]", metric: str | None, settings: Settings) -> None:
    params = list(dict.fromkeys(name for row in found for name in row.params))
    told = sorted({name for row in found for name in row.metrics}, key=lambda name: (name != metric, name))
    # A parameter may have the name of a metric, and either may have that of a column of ours.
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
    text = io.StringIO()
    written = csv.writer(text, lineterminator="\n")
    written.writerow(columns)
    written.writerows([["" if row.get(name) is None else row[name] for name in columns] for row in rows])
    click.echo(text.getvalue(), nl=False)
