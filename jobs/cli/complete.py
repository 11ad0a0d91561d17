"""What a shell completes after a verb: targets, jobs that were submitted from here, stacks, files.

Values are known by their placeholder in the help, so that a verb has nothing to say of it.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.types import StringParamType

from .settings import Settings

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

JOBS_SHOWN = 100


def targets(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """Those of the source that the command would read, with their kinds."""
    from ..targets import load

    settings = context.find_object(Settings)
    for entry in load(settings.targets if settings else None).entries.values():
        yield entry.name, entry.kind


def jobs(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """Ids, newest first. A whole reference has a colon, at which bash begins another word: only where one is begun."""
    from . import history

    for entry in history.recent()[:JOBS_SHOWN]:
        ref = str(entry["ref"])
        yield ref if ":" in begun else ref.rpartition("/")[2], f"{entry['name']} on {entry['target']}"


def stacks(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """Those with a file in this folder."""
    for path in sorted(Path().glob("Pulumi.*.yaml")):
        yield path.name.removeprefix("Pulumi.").removesuffix(".yaml"), ""


Known = Callable[[click.Context, str], Iterator[tuple[str, str]]]
KNOWN: dict[str, Known | str] = {"TARGET": targets, "JOB": jobs, "STACK": stacks, "FILE": "file", "FOLDER": "dir"}


class Completed(StringParamType):
    """A text of which a shell knows what it may be."""

    def __init__(self, known: Known | str) -> None:
        self.known = known

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        if isinstance(self.known, str):
            return [CompletionItem(incomplete, type=self.known)]
        try:
            found = list(self.known(ctx, incomplete))
        except Exception:  # noqa: BLE001 - a shell shows nothing of what is wrong
            return []
        return [CompletionItem(value, help=about or None) for value, about in found if value.startswith(incomplete)]


def completed(param: click.Parameter) -> click.Parameter:
    """The parameter, whose texts a shell completes where its placeholder is known."""
    named = re.search(r"[A-Z]+", param.metavar or "")
    if named and type(param.type) is StringParamType and (known := KNOWN.get(named[0])):
        param.type = Completed(known)
    return param
