"""Parser of the flags of a gcloud command. Source of the grammar: gcloud's own `topic escaping` and calliope's
arg_parsers (--flag=value, --flag value, lists by commas, ^X^ for another delimiter)."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from accel.diagnostics.errors import BadInput
from accel.diagnostics.redaction import SECRET_NAME

from . import script_text
from .names import suggestion
from .reading import STDIN, Json, named_file, read
from .report import Report
from .shell import MOMENT, PastedCommand, is_command, pasted_command

GLOBAL = {
    **dict.fromkeys(
        ("--account", "--billing-project", "--configuration", "--flags-file", "--format", "--project"), True
    ),
    **dict.fromkeys(("--impersonate-service-account", "--verbosity", "--trace-token", "--access-token-file"), True),
    **dict.fromkeys(("--quiet", "-q", "--log-http", "--user-output-enabled", "--no-user-output-enabled"), False),
}
"""Flags of gcloud itself, and whether each takes a value. Source: https://cloud.google.com/sdk/gcloud/reference"""

FLAGS_FILE = "holds flags that are not read here; write them into the command"


@dataclass
class CommandLine:
    """Parts of a command line: positional words, flags with their values in order, words after `--`, unknown flags."""

    words: list[str] = field(default_factory=list[str])
    flags: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    rest: list[str] | None = None
    unknown: dict[str, str] = field(default_factory=dict[str, str])
    """Unknown flags by name, and what is wrong with each."""
    unknown_values: dict[str, str] = field(default_factory=dict[str, str])


def parse_flags(argv: Sequence[str], known: Mapping[str, bool]) -> CommandLine:
    """Parse the flags of a command. `known` says whether each flag takes a value."""
    given = CommandLine()
    takes = {**GLOBAL, **known}
    left = list(argv)
    while left:
        word = left.pop(0)
        if word == "--":
            given.rest = left
            break
        if not word.startswith("-") or word == "-":
            given.words.append(word)
            continue
        name, equals, value = word.partition("=")
        if name not in takes:
            if not equals and left and not left[0].startswith("-"):
                value = left.pop(0)
            given.unknown_values[name] = value
            given.unknown[name] = f"is no flag of this command{suggestion(name, list(known))}"
        elif not takes[name]:
            given.flags[name] = [value or "true"]
        elif equals or left:
            given.flags.setdefault(name, []).append(value if equals else left.pop(0))
        else:
            given.unknown[name] = "has no value"
    return given


Lines = list[tuple[CommandLine, PastedCommand | None]]


@dataclass(frozen=True)
class Source:
    """Input as written: a document, or a command with the document of its --config, and flags given after it."""

    document: Json
    lines: Lines
    """Pasted command, and the flags given after it, which override it."""
    secrets: list[str]
    moment: str = ""
    """Part that made the job's name different each time, such as `$(date)`, and is left out of it."""


def source(
    name: str,
    data: bytes,
    flags: Sequence[str],
    variables: Mapping[str, str],
    verb: str,
    known: Mapping[str, bool],
    take_words: Callable[[CommandLine], None],
    unneeded: Collection[str] = (),
    name_of: Callable[[CommandLine], list[str]] | None = None,
) -> Source:
    """Read a document or a pasted command `verb`. `take_words` takes the command's own name off its words; `unneeded`
    holds flags whose values are left out; `name_of` returns the list whose last item is the job's name. Raise BadInput
    if the input cannot be read."""
    text = data.decode("utf-8-sig", errors="replace")
    lines: Lines = []
    values: Json = {}
    secrets = [value for key, value in variables.items() if SECRET_NAME.search(key)]
    moment = ""
    plain = script_text.readable(text)
    if is_command(plain):
        text = plain
        written = pasted_command(name, text, variables, verb)
        secrets = [*written.secrets, *secrets]
        command = parse_flags(written.argv, known)
        take_words(command)
        moment = _take_moment(name_of(command), written) if name_of else ""
        _take_input(command, written)
        written.unknown = _needed(text, command, written, {*GLOBAL, *unneeded} - {"--flags-file"})
        lines.append((command, written))
        if config := command.flags.get("--config"):
            values = document(name, config[-1], written)
    elif text.strip():
        values = read(name, data)
    if flags:
        lines.append((parse_flags(flags, known), None))
    return Source(values, lines, secrets, moment)


def _take_moment(names: list[str], written: PastedCommand) -> str:
    """Remove the parts that make each name different from the last of the names. Return the first part."""
    found = [mark for mark in written.unknown.values() if names and mark in names[-1] and MOMENT.match(mark)]
    for mark in found:
        names[-1] = names[-1].replace(mark, "")
    if found:
        names[-1] = names[-1].strip("-_. ") or "imported"
    return found[0] if found else ""


def _take_input(command: CommandLine, written: PastedCommand) -> None:
    """Put the file that the command has as its input in the place of --config's `-`."""
    config = command.flags.get("--config", [""])
    if config[-1] in STDIN:
        config[-1] = written.take_input() or config[-1]


def tell_moment(report: Report, field: str, name: str, moment: str) -> None:
    if moment:
        report.changed(field, name, f"{moment[:60]} makes each name another, and a job's reference is one anyway")


def _needed(text: str, command: CommandLine, written: PastedCommand, left_out: Collection[str]) -> dict[str, str]:
    """Return the unknown variables in the values that are read, each by the name that --var takes if it has one."""
    texts = [*command.words, *(command.rest or ()), *command.unknown_values.values()]
    texts += [value for flag, values in command.flags.items() if flag not in left_out for value in values]
    needed = {name: mark for name, mark in written.unknown.items() if any(mark in each for each in texts)}
    return script_text.by_holder(text, needed)


def items(text: str) -> list[str]:
    delimiter = re.match(r"^\^([^^]+)\^", text)
    if delimiter:
        return text[delimiter.end() :].split(delimiter[1])
    return text.split(",") if text else []


def pairs(text: str) -> dict[str, str]:
    """Return a dictionary flag's pairs. An item without `=` continues the one before: a value may hold a comma."""
    found: dict[str, str] = {}
    last = ""
    for item in items(text):
        key, equals, value = item.partition("=")
        if equals:
            found[key.strip()] = value
            last = key.strip()
        elif last:
            found[last] += f",{item}"
        else:
            found[item.strip()] = ""
    return found


def twice(text: str) -> list[str]:
    """Return the keys that occur more than once in a dictionary flag's value. gcloud refuses them."""
    keys = [item.partition("=")[0].strip() for item in items(text) if "=" in item]
    return [key for key in dict.fromkeys(keys) if keys.count(key) > 1]


def document(name: str, config: str, pasted: PastedCommand) -> Json:
    """Read what --config names: a heredoc of the text, or a file. Raise BadInput if it cannot be read."""
    stdin = config in STDIN
    for file, text in pasted.files.items():
        if (stdin and file == "-") or (file and PurePosixPath(file) == PurePosixPath(config)):
            others = [word for word in pasted.argv if not word.endswith(config)]
            pasted.unknown = {
                key: written for key, written in pasted.unknown.items() if any(written in word for word in others)
            }  # what the file is called does not matter
            if made := re.match(r"\s*[\"']?\$\(\s*(envsubst|sed|cat|jq)\b(?:[^<)]*<\s*([\w./-]+))?", text):
                of = f"import {made[2]} itself" if made[2] else "import the file that it reads"
                raise BadInput(f"{name}: --config: is what `{made[1]}` makes of a file: {of}, with --var NAME=VALUE")
            return read(f"{name}: {config}", text.encode())
    if lacking := [(key, written) for key, written in pasted.unknown.items() if written in config]:
        asked = " ".join(f"--var {key}=<value>" for key in pasted.unknown if re.fullmatch(r"\w+", key))
        said = f"holds {lacking[0][1]}, which no shell has replaced"
        raise BadInput(f"{name}: --config: {said}; {f'give {asked}' if asked else 'write its name instead'}")
    content, place = named_file(name, "--config", config)
    return read(place, content)


AGAIN = "is given after -- too, which wins over the command"


def note_again(report: Report, lines: Sequence[CommandLine]) -> None:
    for flag in lines[0].flags if len(lines) > 1 else ():
        if flag in lines[1].flags and flag in report.fields and lines[0].flags[flag] != lines[1].flags[flag]:
            report.note(flag, AGAIN)


def is_json(text: str) -> bool:
    try:
        return text.lstrip().startswith("[") and isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def enum(text: str) -> str:
    """Convert a choice from the spelling of flags (`nvidia-tesla-t4`, `standard-1`) to that of the API."""
    return text.upper().replace("-", "_")


def after(rest: Iterable[str], service: Iterable[str]) -> list[str]:
    """Return the flags of the service among the words that follow `--`."""
    names = set(service)
    return [word.partition("=")[0] for word in rest if word.partition("=")[0] in names]
