"""The page of the commands and their options, docs/cli.md: what their parsers say, as Markdown."""

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import click

from accel.console.options import options
from accel.console.verb import Verb
from jobs.cli.main import jobs

from .cli.main import stacks

OWN = {"--help", "--version"}
"""Those of click, which no row is worth."""
SANDBOX_VERBS = ("start", "stop", "status", "env", "config")


def page() -> str:
    """The whole page."""
    parts = [
        "# The commands",
        "This page is generated from the commands' own parsers; `--help` of each says the same.",
        *_group("accel-jobs", jobs),
        *_group("stacks", stacks),
        *_sandbox(),
    ]
    return "\n\n".join(parts) + "\n"


def _group(name: str, command: click.Group) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield f"## {name}"
    yield from _words(command.help)
    yield "Every verb takes these, before or after its name; not each has a use for all of them:"
    yield _table(command.get_params(context), context)
    yield from _words(command.epilog)
    for verb in command.list_commands(context):
        found = command.get_command(context, verb)
        assert found is not None
        yield from _command(found, click.Context(found, context, info_name=verb))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"### {context.command_path}"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"`{context.command_path} {usage}`"
    yield from _words(command.help)
    common = {each.name for each in options(command.COMMON)} if isinstance(command, Verb) else set[str | None]()
    own = [each for each in command.get_params(context) if each.name not in common]
    if table := _table(own, context):
        yield table
    if isinstance(command, click.Group):
        for verb in command.list_commands(context):
            found = command.get_command(context, verb)
            assert found is not None
            yield from _command(found, click.Context(found, context, info_name=verb))


def _table(parameters: list[click.Parameter], context: click.Context) -> str:
    shown = [each for each in parameters if isinstance(each, click.Option) and not {*each.opts} & OWN]
    told = [record for each in shown if (record := each.get_help_record(context))]
    rows = [f"| `{_cell(names)}` | {_cell(said).replace('<', '&lt;')} |" for names, said in told]
    return "\n".join(["| option | |", "|---|---|", *rows]) if rows else ""


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def _words(text: str | None) -> Iterator[str]:
    """Paragraphs, each on one line, as the terminal wraps them."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text or "")):
        if words := re.sub(r"\s+", " ", paragraph.replace("\b", "")).strip():
            yield words.replace("<", "&lt;")


def _sandbox() -> Iterator[str]:
    """Its parser is asked in a process of its own: nothing of the project imports the sandbox."""
    yield "## sandbox"
    for verb in ([], *([each] for each in SANDBOX_VERBS)):
        command = [sys.executable, "-m", "sandbox", *verb, "--help"]
        environ = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
        told = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
        if verb:
            yield f"### sandbox {verb[0]}"
        yield f"```text\n{told.strip()}\n```"
