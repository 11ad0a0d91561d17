"""`jobs report`."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .report import say
from .settings import Settings
from .verb import Verb

if TYPE_CHECKING:
    from ..backend import Backend, JobRef
    from ..html.page import Facts


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.option("--out", metavar="FILE.html", required=True, help="Where the page is written; - for standard output.")
@click.pass_obj
def report(settings: Settings, job: str, out: str) -> None:
    """Write one HTML page about JOB: when it waited, ran and was reclaimed, its metrics, GPUs and cost.

    The page needs nothing else and fetches nothing. What a platform does not tell is "not known" on it.
    """
    from ..errors import BadInput
    from ..html.page import page
    from .finding import job as found

    ref, backend = found(job)
    text = page(_facts(ref, backend, settings))
    if out == "-":
        click.echo(text, nl=False)
        return
    path = Path(out)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--out: {out}: cannot be written: {error.strerror}") from error
    say(f"wrote {path} ({len(text.encode()) // 1024 + 1} KiB)")


def _facts(ref: "JobRef", backend: "Backend", settings: Settings) -> "Facts":
    """All that can be read; what cannot is a warning on the page. Raises as status."""
    from ..backend import Attempts, Explain, Logs, Phase
    from ..errors import JobsError
    from ..html.gather import Gathered
    from ..html.page import Facts
    from ..tasks import Tasks
    from .so_far import known

    status = backend.status(ref)
    warnings: list[str] = []
    attempts = tasks = why = gathered = None
    try:
        attempts = tuple(backend.attempts(ref)) if isinstance(backend, Attempts) else None
    except JobsError as error:
        warnings.append(f"its attempts could not be read: {error.message}")
    try:
        tasks = tuple(backend.tasks(ref)) if status.tasks and isinstance(backend, Tasks) else None
    except JobsError as error:
        warnings.append(f"its tasks could not be read: {error.message}")
    try:
        explained = isinstance(backend, Explain) and status.phase in (Phase.FAILED, Phase.QUEUED, Phase.STARTING)
        why = backend.explain(ref) if explained and isinstance(backend, Explain) else None
    except JobsError as error:
        warnings.append(f"why could not be told: {error.message}")
    try:
        gathered = Gathered().take(backend.logs(ref)) if isinstance(backend, Logs) else None
    except JobsError as error:
        warnings.append(f"its log could not be read: {error.message}")
    price = known([ref], settings)[ref]
    status = replace(status, target=status.target or price.target)
    return Facts(status, gathered, price, datetime.now(UTC), attempts, tasks, why, tuple(warnings))
