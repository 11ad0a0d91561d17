"""The options that every verb accepts, before or after its name."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..diagnostics.errors import BadInput
from ..duration import WRITTEN, seconds
from ..whole_numbers import INT_MAX
from .errors import say, warn

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PROGRAM = "accel-jobs"
"""Command name for hints. `jobs`, its other name, is a builtin of every shell, where a pasted hint would fail."""
FORMATS = ("table", "wide", "json", "jsonl", "id")


@dataclass
class Settings:
    """The common options as the user set them, whatever the verb."""

    output: str = "table"
    targets: str | None = None
    debug: bool = False
    strict: bool = False
    yes: bool = False

    def say(self, message: str) -> None:
        say(message)

    def warn(self, message: str) -> None:
        warn(message, self)

    def resubmission(self, key: str) -> str:
        return f"the same command with --key {key}"


class OneOf(click.ParamType[str]):
    """One of a few words. The error for any other word names the nearest."""

    name = "word"

    def __init__(self, *words: str) -> None:
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.words:
            return str(value)
        from accel.diagnostics.messages import did_you_mean, printable_name

        option = param.opts[-1] if param else ""
        near = did_you_mean(str(value), self.words) or f"; known: {', '.join(self.words)}"
        raise BadInput(f"{option}: unknown value {printable_name(str(value))}{near}")

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "|".join(self.words)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in self.words if word.startswith(incomplete)]


class WholeNumber(click.IntRange):
    """A whole number up to INT_MAX."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = int(super().convert(value, param, ctx))
        if found > INT_MAX:
            self.fail(f"must be at most {INT_MAX}, is {str(value)[:60]}", param, ctx)
        return found


class Amount(click.FloatRange):
    """A number that is one: neither nan, which no comparison finds, nor inf."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = float(super().convert(value, param, ctx))
        if not isfinite(found):
            self.fail(f"must be a number, is {str(value)[:60]!r}", param, ctx)
        return found


class Duration(click.ParamType[int]):
    """Seconds from 90, 90s, 30m, 4h or 2d, up to INT_MAX."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = value if isinstance(value, int) else seconds(str(value))
        if found is None:
            self.fail(f"must be {WRITTEN}, is {str(value)[:60]!r}", param, ctx)
        if found > INT_MAX:
            self.fail(f"must be at most {INT_MAX} s, is {str(value)[:60]!r}", param, ctx)
        return found


COMMON = ("output", "targets", "strict", "yes", "debug")


def options(names: Sequence[str] = COMMON) -> list[click.Option]:
    every = [
        click.Option(
            ["-o", "--output"],
            type=OneOf(*FORMATS),
            callback=_note("output"),
            expose_value=False,
            help="Output format.",
        ),
        click.Option(
            ["--targets"],
            metavar="SOURCE",
            callback=_note("targets"),
            expose_value=False,
            help="Targets: a JSON file or ssm:<region>/<path>. Default: $ACCEL_TARGETS, then .accel/targets.json.",
        ),
        _flag("--strict", "strict", "Treat warnings as errors."),
        _flag("--yes", "yes", "Do not ask for confirmation.", "-y"),
        _flag("--debug", "debug", "Show the traceback of an error."),
    ]
    return [option for option in every if option.name in names]


def program() -> str:
    started = Path(sys.argv[0])
    name = started.parent.name if started.name == "__main__.py" else started.name
    return name if name == "stacks" else PROGRAM


def _flag(name: str, field: str, text: str, *short: str) -> click.Option:
    return click.Option([name, *short], is_flag=True, callback=_note(field), expose_value=False, help=text)


def _note(field: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        # A default after the verb must not override an option before it.
        if value:
            setattr(context.ensure_object(Settings), field, value)

    return note
