"""`jobs report`."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from accel.console.errors import say
from accel.console.options import Settings
from accel.console.verb import Verb
from accel.diagnostics.errors import JobsError
from accel.files import write_output

from ..backends.base import Attempts, Explain, Logs, Phase, Resubmit
from ..backends.tasks import Tasks
from ..client import resolve
from ..client.accrued_cost import job_prices
from ..client.request_body import request_summary
from ..model import sweep_tasks
from ..model.keys import submission_key
from ..views.report import sweep
from ..views.report.chart import DRAWN_MAX
from ..views.report.gather import SERIES_MAX, ReportData
from ..views.report.page import Facts, page

if TYPE_CHECKING:
    from ..backends.base import Backend, JobRef
    from ..views.report.sweep import Sweep

T = TypeVar("T")


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.option("--out", metavar="FILE.html", required=True, help="File to write; - for standard output.")
@click.pass_obj
def report(settings: Settings, job: str, out: str) -> None:
    """Write one HTML page about JOB: when it waited, ran and was preempted, its metrics, GPUs and cost.

    The page is self-contained and loads nothing. Values that the platform does not report are shown as "not known".
    """
    ref, backend = resolve.job(job, settings)
    text = page(_facts(ref, backend, settings))
    if out == "-":
        click.echo(text, nl=False)
        return
    path = Path(out)
    write_output("--out", path, text)
    say(f"wrote {path} ({len(text.encode()) // 1024 + 1} KiB)")


def _facts(ref: "JobRef", backend: "Backend", settings: Settings) -> Facts:
    """Turn errors into warnings on the page, except those of status, which are raised."""
    status = backend.status(ref)
    warnings: list[str] = []

    def read(what: str, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except JobsError as error:
            warnings.append(f"{what} could not be {'told' if what == 'why' else 'read'}: {error.message}")
            return None

    attempts = read("its attempts", lambda: tuple(backend.attempts(ref)) if isinstance(backend, Attempts) else None)
    tasks = read("its tasks", lambda: tuple(backend.tasks(ref)) if status.tasks and isinstance(backend, Tasks) else ())
    asked = status.phase in (Phase.FAILED, Phase.QUEUED, Phase.STARTING)
    why = read("why", lambda: backend.explain(ref) if asked and isinstance(backend, Explain) else None)
    gathered = read("its log", lambda: ReportData().take(backend.logs(ref)) if isinstance(backend, Logs) else None)
    key = submission_key(str(ref), "report")
    body = read(
        "what was sent", lambda: backend.resubmit_request(ref, key).body if isinstance(backend, Resubmit) else None
    )
    price = job_prices([ref], settings)[ref]
    status = replace(status, target=status.target or price.target)
    found = Facts(status, gathered, price, datetime.now(UTC), attempts, tasks or None, why, warnings=tuple(warnings))
    return _with_sent(found, ref, backend, body) if body else found


def _with_sent(found: Facts, ref: "JobRef", backend: "Backend", body: "Mapping[str, Any]") -> Facts:
    """Add what the request has: image, command and code, and the parameters of a task or the tasks of a sweep."""
    found = replace(found, sent=request_summary(ref.kind, body))
    try:
        swept = sweep_tasks.find_sweep(body)
    except JobsError as error:
        return replace(found, warnings=(*found.warnings, error.message))
    if swept is None:
        return found
    if not found.tasks:
        return replace(found, params=swept.params(swept.places[0])) if len(swept.places) == 1 else found
    told = found.gathered.last if found.gathered else {}
    tuned = sweep.of(ref, swept, found.tasks, told)
    return replace(found, sweep=tuned, gathered=_of_the_best(found.gathered, tuned, backend, ref))


def _of_the_best(
    gathered: "ReportData | None", found: "Sweep", backend: "Backend", ref: "JobRef"
) -> "ReportData | None":
    """Add the curves of the best tasks, where there are too many tasks to keep all."""
    if gathered is None or len(gathered.last) <= SERIES_MAX or not isinstance(backend, Logs):
        return gathered
    with suppress(JobsError):
        for row in found.ranked[:DRAWN_MAX]:
            own = ReportData().take(backend.logs(ref, task=row.place))
            for name, curves in own.metrics.items():
                kept = gathered.metrics.setdefault(name, {})
                kept.update({(row.place, attempt): curve for (_, attempt), curve in curves.items()})
    return gathered
