"""A command as it is pasted from a page or a script: comments, line continuations, assignments and $VARIABLES.

Nothing is run: `$(date)` and a variable that nobody sets stay as they are written, and are told.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from accel.diagnostics.errors import BadInput

_ASSIGNMENT = re.compile(r"^\s*(?:export\s+|readonly\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_MARK = "\ue000{}\ue001"
_MARKED = re.compile("\ue000(\\d+)\ue001")
_ENDS = (";", "&", "&&", "|", "||", ">", ">>", "<", "2>", "&>", "|&", "(", ")")


@dataclass
class Pasted:
    """The words of the command, the variables in them that are not known, and what was wrong with the text, each with
    its line."""

    argv: list[str] = field(default_factory=list[str])
    unknown: dict[str, str] = field(default_factory=dict[str, str])
    """By name (`JOB_NAME`, `$(date)`); the value is how it is written."""
    notes: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    """Lines of flags that a backslash is missing before, so that they are no part of the command."""
    rest: list[str] = field(default_factory=list[str])
    """What follows the command in its line: a pipe, a second command."""


def is_command(text: str, program: str = "gcloud") -> bool:
    """Whether a text is a pasted command rather than a document."""
    return any(re.match(rf"\s*(?:[$!%]\s*)?{program}\s", line) for line in text.splitlines())


def roles(text: str) -> list[str]:
    """The roles of AI Platform that commands of a text grant."""
    return list(dict.fromkeys(re.findall(r"roles/ml\.[A-Za-z]+", text))) if is_command(text) else []


def pasted(name: str, text: str, given: Mapping[str, str], verb: str, program: str = "gcloud") -> Pasted:
    """The one command of a program in a text. `verb`: words of it, such as `jobs submit training`; `given`: values of
    variables, which win over the text's own.

    Raises BadInput where there is none, or several, or a quote is not closed.
    """
    found = Pasted()
    variables: dict[str, str] = {}
    marks: list[str] = []
    commands: list[tuple[int, str]] = []
    for number, line in _joined(text, found):
        if not line.strip() or line.lstrip().startswith(("#", "%%")):
            continue
        if assigned := _ASSIGNMENT.match(line):
            words = _split(name, number, _expanded(assigned[2], variables | dict(given), marks, found))
            variables[assigned[1]] = " ".join(words[:1])
        elif is_command(line, program) and re.search(rf"\s{verb.replace(' ', chr(92) + 's+')}(\s|$)", line):
            commands.append(
                (number, _expanded(re.sub(r"^\s*[$!%]\s*", "", line), variables | dict(given), marks, found))
            )
        elif commands and re.match(r"\s*--?\w", line):
            found.lost.append(f"line {number}: begins with a flag, and the line before does not end with a backslash")
        elif roles(line):
            pass
        else:
            found.notes.append(f"line {number}: is not read: it is neither `{program} ... {verb}` nor NAME=value")
    if len(commands) != 1:
        raise BadInput(f"{name}: must hold one command `{program} ... {verb}`, holds {len(commands) or 'none'}")
    words = _split(name, *commands[0])
    end = next((index for index, word in enumerate(words) if word in _ENDS), len(words))
    found.rest = [_written(word, marks) for word in words[end:]]
    found.argv = [_written(word, marks) for word in words[:end]]
    used = {marks[int(mark)] for word in words[:end] for mark in _MARKED.findall(word)}
    found.unknown = {_name(written): written for written in marks if written in used}
    return found


def _joined(text: str, found: Pasted) -> list[tuple[int, str]]:
    """Lines with their continuations, each with the number of its first."""
    joined: list[tuple[int, str]] = []
    open_ = False
    for number, line in enumerate(text.splitlines(), 1):
        if open_ and line.lstrip().startswith("#"):
            found.notes.append(f"line {number}: a comment inside of the command, where a shell would end it")
            continue
        commented = re.match(r"^(.*\S)?\s*\\\s+#.*$", line)
        if commented:
            found.notes.append(f"line {number}: a comment after the backslash, where a shell would end the command")
            line = (commented[1] or "") + "\\"
        elif re.search(r"\\\s+$", line):
            found.notes.append(f"line {number}: a space after the backslash, where a shell would end the command")
            line = line.rstrip()
        goes_on = line.endswith("\\")
        part = line[:-1] if goes_on else line
        if open_:
            first, before = joined[-1]
            joined[-1] = (first, f"{before} {part}")
        else:
            joined.append((number, part))
        open_ = goes_on
    return joined


def _expanded(line: str, variables: Mapping[str, str], marks: list[str], found: Pasted) -> str:
    """The line with the variables that are known; those that are not are marks. Single quotes hide them."""
    out: list[str] = []
    index, quoted = 0, False
    double = False
    while index < len(line):
        letter = line[index]
        if letter == "'" and not double:
            quoted = not quoted
        elif letter == '"' and not quoted:
            double = not double
        elif letter == "\\" and not quoted:
            out.append(line[index : index + 2])
            index += 2
            continue
        elif letter in "$`" and not quoted:
            text, length = _value(line[index:], variables, marks)
            out.append(text)
            index += length
            continue
        out.append(letter)
        index += 1
    return "".join(out)


def _value(rest: str, variables: Mapping[str, str], marks: list[str]) -> tuple[str, int]:
    """What stands for the `$...` at the beginning of a text, and how long it is there."""
    if found := _VARIABLE.match(rest):
        name = found[1] or found[2]
        if name in variables:
            return variables[name], found.end()
        written = found[0]
    elif rest.startswith("$("):
        written = _parenthesis(rest)
    elif rest.startswith("`") and "`" in rest[1:]:
        written = rest[: rest.index("`", 1) + 1]
    elif rest.startswith("${") and "}" in rest:
        written = rest[: rest.index("}") + 1]
    else:
        return rest[0], 1
    marks.append(written)
    return _MARK.format(len(marks) - 1), len(written)


def _parenthesis(rest: str) -> str:
    depth = 0
    for index, letter in enumerate(rest):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0:
            return rest[: index + 1]
    return rest


def _split(name: str, number: int, line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError as error:
        raise BadInput(f"{name}:{number}: cannot be read as a shell would: {str(error).lower()}") from None


def _written(word: str, marks: list[str]) -> str:
    return _MARKED.sub(lambda mark: marks[int(mark[1])], word)


def _name(written: str) -> str:
    found = _VARIABLE.fullmatch(written)
    return (found[1] or found[2]) if found else written
