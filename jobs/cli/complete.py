"""What a shell completes after a verb of `jobs`: targets, and jobs that were submitted from here."""

from collections.abc import Iterator

import click

from accel.console.completion import complete
from accel.console.options import Settings

JOBS_SHOWN = 100


def targets(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """Those of the source that the command would read, with their kinds."""
    from ..client.targets import load

    settings = context.find_object(Settings)
    for entry in load(settings.targets if settings else None).entries.values():
        yield entry.name, entry.kind


def jobs(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """Ids, newest first. A whole reference has a colon, at which bash begins another word: only where one is begun."""
    from ..client import history

    for entry in history.recent()[:JOBS_SHOWN]:
        ref = str(entry["ref"])
        yield ref if ":" in begun else ref.rpartition("/")[2], f"{entry['name']} on {entry['target']}"


def register() -> None:
    """Make the shell complete the placeholders TARGET and JOB."""
    complete("TARGET", targets)
    complete("JOB", jobs)
