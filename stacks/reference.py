"""References as Markdown, of a model or of the commands: `python -m stacks.reference environment|job|cli`.
docs/environment.md, docs/job.md and docs/cli.md are its output; a test compares them."""

import inspect
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from accel.console.options import options
from accel.console.verb import Verb
from jobs.cli.main import jobs
from jobs.model.job import Job

from .cli.main import stacks
from .environment.config import Environment

OWN = {"--help", "--version"}
"""click's own options, which need no row."""
SANDBOX_VERBS = ("start", "stop", "status", "env", "config")

Titles = Mapping[type[BaseModel], str]


def reference(title: str, model: type[BaseModel]) -> str:
    places = _places(model)
    counts = Counter(map(_title, places))
    titles = {one: _title(one) + (f" ({place})" if counts[_title(one)] > 1 else "") for one, place in places.items()}
    sections = [
        f"# {title}",
        "This page is generated from the models; every key that is not named here is refused.",
        *(_section(one, titles) for one in places),
    ]
    return "\n\n".join(sections) + "\n"


def _places(model: type[BaseModel]) -> dict[type[BaseModel], str]:
    """Return each reachable model, with the path of the first field that holds it, the outermost first."""
    found = {model: ""}
    queue = [model]
    while queue:
        here = queue.pop(0)
        for name, field in here.model_fields.items():
            for inner in _inside(field.annotation):
                if inner not in found:
                    found[inner] = f"{found[here]}.{name}".lstrip(".")
                    queue.append(inner)
    return found


def _section(model: type[BaseModel], titles: Titles) -> str:
    about = re.sub(r"\s*\n\s*", " ", (model.__doc__ or "").strip())
    rows = [f"| `{name}` | {_type(field.annotation, titles)} | {_default(field)} | {field.description or ''} |"
            for name, field in model.model_fields.items()]  # fmt: skip
    return "\n".join([f"## {titles[model]}", "", about, "", "| key | type | default | |", "|---|---|---|---|", *rows])


def _title(model: type[BaseModel]) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.__name__.removesuffix("Spec")).lower()
    return words[:1].upper() + words[1:]


def _inside(hint: Any) -> Iterator[type[BaseModel]]:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        yield hint
    for part in get_args(hint):
        yield from _inside(part)


def _type(hint: Any, titles: Titles) -> str:
    plain: str = getattr(hint, "__name__", "")
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        anchor = re.sub(r"[^\w -]", "", titles[hint].lower()).replace(" ", "-")
        return f"[{_title(hint).lower()}](#{anchor})"
    arguments = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is dict:
        return f"mapping of {_type(arguments[1], titles)}"
    if get_origin(hint) is list:
        return f"list of {_type(arguments[0], titles)}"
    if str(get_origin(hint)) == "typing.Literal":
        return " or ".join(f"`{value}`" for value in arguments)
    if get_origin(hint) is Annotated:
        return _type(arguments[0], titles)
    if arguments:
        return " or ".join(_type(part, titles) for part in arguments)
    return {"int": "whole number", "float": "number", "str": "text", "bool": "true or false"}.get(plain, plain)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined or value is None or value in ({}, []):
        return ""
    if isinstance(value, BaseModel):
        return "its own defaults"
    if isinstance(value, list):
        entries: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return "; ".join(_entry(entry) for entry in entries)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _entry(value: Any) -> str:
    if isinstance(value, BaseModel):
        return "`" + ", ".join(f"{key}: {inner}" for key, inner in value.model_dump(exclude_none=True).items()) + "`"
    return f"`{value}`"


def _commands() -> str:
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
    """Yield paragraphs, each on one line, since the terminal wraps them."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text or "")):
        if words := re.sub(r"\s+", " ", paragraph.replace("\b", "")).strip():
            yield words.replace("<", "&lt;")


def _sandbox() -> Iterator[str]:
    """Query its parser in a separate process: the project must not import the sandbox."""
    yield "## sandbox"
    for verb in ([], *([each] for each in SANDBOX_VERBS)):
        command = [sys.executable, "-m", "sandbox", *verb, "--help"]
        environ = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
        told = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
        if verb:
            yield f"### sandbox {verb[0]}"
        yield f"```text\n{told.strip()}\n```"


def pages() -> dict[str, str]:
    return {
        "environment": reference("The environment: accel:environment in Pulumi.<stack>.yaml", Environment),
        "job": reference("The job file", Job),
        "cli": _commands(),
    }


if __name__ == "__main__":
    sys.stdout.write(pages()[sys.argv[1]])
