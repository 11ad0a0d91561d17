"""`jobs logs`."""

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from accel.console.options import Duration, OneOf, Settings, program
from accel.console.screen import style_of
from accel.console.terminal_text import colour_of, job_text
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput, Interrupted
from accel.diagnostics.redaction import own

from ..backends.registry import of_ref
from ..client import resolve
from ..client.logs import log_lines, task_lines
from ..client.progress import parse, place_of, short
from ..client.waiting import end
from ..runtime.lines import MARK

if TYPE_CHECKING:
    from accel.console.terminal_text import Style

    from ..backends.base import Backend, JobRef, LogLine

PROGRESS = ("short", "none", "raw")
TASKS_MAX = 32
"""Logs that are read at once."""


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.option("--follow", "-f", is_flag=True, help="Until the job has ended; exit 125 if it failed.")
@click.option(
    "--task",
    "--node",
    "tasks",
    type=click.IntRange(min=0),
    metavar="INDEX",
    multiple=True,
    help="Of one task or node only; may be given several times.",
)
@click.option(
    "--tail",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of the lines so far the last N only, before --grep; of each task that --task names.",
)
@click.option("--since", type=Duration(), help="Lines of the last so long only, as 10m or 2h.")
@click.option("--grep", "pattern", metavar="REGEX", help="Lines that match it only.")
@click.option("--progress", type=OneOf(*PROGRESS), default=PROGRESS[0], help="How lines that tell progress are shown.")
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
    """Show what JOB printed, the lines of each task in a colour of its own. -o wide adds the time of each line."""
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
    _print(lines, ref, shown)
    if follow:
        end([backend.status(ref)])


@dataclass(frozen=True)
class LogView:
    """Which lines are shown, and how. `progress`: of PROGRESS."""

    form: str = "table"
    pattern: "re.Pattern[str] | None" = None
    progress: str = PROGRESS[0]
    after: datetime | None = None


def follow_log(backend: "Backend", ref: "JobRef") -> None:
    """Print a job's log until the job has ended. Raises Interrupted, which says that the job goes on."""
    _print(log_lines(backend, ref, None, True), ref, LogView())


def _print(lines: "Iterable[LogLine]", ref: "JobRef", shown: LogView) -> None:
    to = own(sys.stdout)  # what a job printed is its owner's, and redacted it would be another log
    style, terminal = style_of(to), to.isatty()
    try:
        for line in lines:
            text = _text(line, shown)
            if text is None or (shown.pattern and not shown.pattern.search(text)):
                continue
            if shown.form in ("json", "jsonl"):
                found = {"at": line.at.isoformat(), "source": line.source, "text": line.text}
                click.echo(json.dumps(found), to)
            else:
                click.echo(_written(line, text, shown, style, terminal), to, color=True)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {ref} goes on", f"`{program()} get {ref}` shows it") from None


def _text(line: "LogLine", shown: LogView) -> str | None:
    """The line, or in short what it tells; None where it is not to be shown."""
    if shown.after and line.at < shown.after:
        return None

    if shown.progress == "raw" or MARK not in line.text:
        return line.text

    told = parse(line.text)
    if told is None:
        return line.text
    return None if shown.progress == "none" else line.text if shown.form in ("json", "jsonl") else short(told)


def _written(line: "LogLine", text: str, shown: LogView, style: "Style", terminal: bool) -> str:
    """At a terminal nothing that a job printed does more than show; elsewhere it is as it was printed."""
    source = f"[{line.source}] " if line.source else ""
    time = f"{line.at.isoformat(timespec='milliseconds')} " if shown.form == "wide" else ""
    if not terminal:
        return f"{time}{source}{text}"
    painted = style.paint(style.clean(source), colour_of(place_of(line.source)[0]))
    return f"{time}{painted}{job_text(text, style)}"


def _pattern(text: str | None) -> "re.Pattern[str] | None":
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise BadInput(f"--grep: {str(text)[:60]!r}: is no regular expression: {error}") from None
