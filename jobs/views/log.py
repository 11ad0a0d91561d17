"""A job's log in a terminal or a file: the selected lines, in the colour of their task."""

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import click

from accel.console.options import program
from accel.console.screen import style_of
from accel.console.terminal_text import Style, colour_of, job_text
from accel.diagnostics.errors import Interrupted
from accel.diagnostics.redaction import own

from ..backends.base import Backend, JobRef, LogLine
from ..client.logs import log_lines
from ..client.progress import parse, place_of, short
from ..runtime.lines import MARK

PROGRESS = ("short", "none", "raw")


@dataclass(frozen=True)
class LogView:
    """Selection and form of the lines; `progress` is one of PROGRESS."""

    form: str = "table"
    pattern: re.Pattern[str] | None = None
    progress: str = PROGRESS[0]
    after: datetime | None = None


def print_lines(lines: Iterable[LogLine], ref: JobRef, shown: LogView) -> None:
    """Print lines as they arrive. Raise Interrupted, which says that the job goes on."""
    to = own(sys.stdout)  # not redacted: the output is the job owner's, and redacted it would be another log
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


def follow_log(backend: Backend, ref: JobRef) -> None:
    """Print a log until the job has ended. Raise Interrupted, which says that the job goes on."""
    print_lines(log_lines(backend, ref, None, True), ref, LogView())


def _text(line: LogLine, shown: LogView) -> str | None:
    """Return the line, or a short form of a progress line; None where it is not selected."""
    if shown.after and line.at < shown.after:
        return None
    if shown.progress == "raw" or MARK not in line.text:
        return line.text
    told = parse(line.text)
    if told is None:
        return line.text
    return None if shown.progress == "none" else line.text if shown.form in ("json", "jsonl") else short(told)


def _written(line: LogLine, text: str, shown: LogView, style: Style, terminal: bool) -> str:
    """Escape control sequences that a job prints, at a terminal; elsewhere, keep the text as printed."""
    source = f"[{line.source}] " if line.source else ""
    time = f"{line.at.isoformat(timespec='milliseconds')} " if shown.form == "wide" else ""
    if not terminal:
        return f"{time}{source}{text}"
    painted = style.paint(style.clean(source), colour_of(place_of(line.source)[0]))
    return f"{time}{painted}{job_text(text, style)}"
