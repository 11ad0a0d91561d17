"""`jobs logs`."""

import re
from datetime import UTC, datetime, timedelta

import click

from accel.console.options import Duration, OneOf, Settings, WholeNumber
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput

from ..backends.registry import of_ref
from ..client import resolve
from ..client.logs import log_lines, task_lines
from ..client.waiting import end
from ..views.log import PROGRESS, LogView, print_lines

TASKS_MAX = 32


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.option("--follow", "-f", is_flag=True, help="Follow the output until the job ends; exit 125 if it failed.")
@click.option(
    "--task",
    "--node",
    "tasks",
    type=WholeNumber(min=0),
    metavar="INDEX",
    multiple=True,
    help="Show only this task or node. Repeatable.",
)
@click.option(
    "--tail",
    type=WholeNumber(min=1),
    metavar="N",
    help="Show only the last N lines so far (of each --task), before --grep.",
)
@click.option("--since", type=Duration(), help="Show only lines younger than this, such as 10m or 2h.")
@click.option("--grep", "pattern", metavar="REGEX", help="Show only lines that match.")
@click.option("--progress", type=OneOf(*PROGRESS), default=PROGRESS[0], help="How to show lines that report progress.")
@click.pass_obj
def logs(
    settings: Settings,
    job: str,
    follow: bool,
    tasks: tuple[int, ...],
    tail: int | None,
    since: int | None,
    pattern: str | None,
    progress: str,
) -> None:
    """Show the output of JOB, with a colour for each task. -o wide adds the time of each line."""
    if len(tasks) > TASKS_MAX:
        raise BadInput(f"--task: at most {TASKS_MAX} at once, there are {len(tasks)}; without it all are shown")
    after = None if since is None else datetime.now(UTC) - timedelta(seconds=since)
    shown = LogView(settings.output, _pattern(pattern), progress, after)
    ref, backend = resolve.job(job, settings)
    wanted = list(dict.fromkeys(tasks))
    if len(wanted) > 1:
        word = "task" if backend.status(ref).tasks else "node"
        lines = task_lines(ref, of_ref, wanted, word, follow, tail)
    else:
        lines = log_lines(backend, ref, wanted[0] if wanted else None, follow, tail)
    print_lines(lines, ref, shown)
    if follow:
        end([backend.status(ref)])


def _pattern(text: str | None) -> "re.Pattern[str] | None":
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise BadInput(f"--grep: {str(text)[:60]!r}: is no regular expression: {error}") from None
