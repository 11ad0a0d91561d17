"""Values of a document that its user was to fill in: $VARIABLES of envsubst and templates, and sample names of pages.
Only addresses are searched in a program's own words: `<pad>` is a token, and a shell has variables of its own."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from accel.rules.jobs import imports, placeholders

from .fields import RequestFields
from .report import Report

_VARIABLE = re.compile(
    r"(?<![\\$])\$(?:\{([A-Za-z_]\w*)(?::?[-=]([^{}$]*))?\}|([A-Za-z_]\w*))|\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}"
)
_BRACKETS = re.compile(r"(?<![\w\]])\[(?:[A-Z][A-Z0-9]*[_ -])*[A-Z][A-Z0-9]*\]")
_ADDRESS = re.compile(r"""(?:gs://|(?:[\w-]+\.)*(?:gcr\.io|pkg\.dev)/)[^\s"';|&,]*""")
_PROGRAM = re.compile(r"(?:^|\.)(?:command|args|containerCommand|containerArgs|env\[\d+\]\.value)$")
_NAME = re.compile(r"\.env\[\d+\]\.name$")
_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh")
_OPTION = re.compile(r"-[a-z]*c")


def fill(value: Any, variables: Mapping[str, str]) -> Any:
    """Put the variables that the user gave into a document, in place, and return it."""
    if isinstance(value, dict):
        inside = cast("dict[str, Any]", value)
        for key in inside:
            inside[key] = fill(inside[key], variables)
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        items[:] = [fill(inner, variables) for inner in items]
    elif isinstance(value, str) and variables and ("$" in value or "{{" in value):
        return _VARIABLE.sub(lambda found: variables.get(_name(found), found[0]), value)
    return cast(Any, value)


def _name(found: re.Match[str]) -> str:
    return cast(str, found[1] or found[3] or found[4])


def ask(
    given: RequestFields,
    variables: Mapping[str, str],
    written: Collection[str] = (),
    left_out: re.Pattern[str] | None = None,
) -> list[str]:
    """Report the variables that have to be filled in for each value, and return their names. Values that the user gave
    are taken as meant. `written`: variables that a shell would have replaced, so that they are not the job's own;
    `left_out`: paths of values that no job has."""
    lacking: dict[str, None] = {}
    for path, value in given.values.items():
        words = cast("list[Any]", value) if isinstance(value, list) else [value]
        texts = [word for word in words if isinstance(word, str)]
        program = _PROGRAM.search(path) is not None
        own = program and _runs_shell(given, path)
        if _NAME.search(path) or (left_out and left_out.search(path)):
            continue
        for found in (each for text in texts for each in _VARIABLE.finditer(text)):
            name = _name(found)
            if name in variables or f"${name}" in variables.values() or (own and name not in written):
                continue
            lacking[name] = None
            given.report.findings(given.name(path), imports.variable(found[0], name, given.name(path)))
    return list(lacking)


def variables_in(text: str) -> list[tuple[str, str]]:
    """Return the variables in a text that have to be filled in: each as written, and its name."""
    return [(found[0], _name(found)) for found in _VARIABLE.finditer(text)]


def ask_for_all(report: Report, names: Iterable[str]) -> None:
    """Ask for all variables that lack a value, in one line that can be copied."""
    asked = list(dict.fromkeys(name for name in names if re.fullmatch(r"[A-Za-z_][\w.]*", name)))
    if len(asked) > 1:
        report.decide("--var", f"give {' '.join(f'--var {name}=<value>' for name in asked)}", imports.VARIABLE.id)


def samples(given: RequestFields, left_out: re.Pattern[str] | None = None) -> None:
    """Refuse values that hold a sample name of a page, such as YOUR_BUCKET. `left_out`: paths of values that no job
    has."""
    for path, value in given.values.items():
        words = cast("list[Any]", value) if isinstance(value, list) else [value]
        if _NAME.search(path) or (left_out and left_out.search(path)):
            continue
        for text in (word for word in words if isinstance(word, str)):
            if _PROGRAM.search(path):
                for address in _ADDRESS.findall(text):
                    _sample(given.report, given.name(path), address)
            else:
                _sample(given.report, given.name(path), text)


def _sample(report: Report, name: str, text: str) -> None:
    if report.findings(name, placeholders.value(name, text)) and (found := _BRACKETS.search(text)):
        said = f'is "{text}"; "{found[0]}" is a placeholder'
        report.findings(name, [placeholders.VALUE.finding(name, said, "write the value that it stands for")])


def _runs_shell(given: RequestFields, path: str) -> bool:
    """Return whether a shell reads a program's words, so that they may have its variables."""
    if path.endswith(".value"):
        return False
    spec = path.rpartition(".")[0]
    names = ("command", "args", "containerCommand", "containerArgs")
    words = [word for name in names for word in _words(given.values.get(f"{spec}.{name}"))]
    return any(word.rpartition("/")[2] in _SHELLS or _OPTION.fullmatch(word) or "\n" in word for word in words) or any(
        re.match(r"\S*\b(?:ba|da|z)?sh\s+-\w*c\b", word) for word in words
    )


def _words(value: Any) -> list[str]:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]
