"""Reader of a command that is pasted from a page or a script, with comments, line continuations, quotes over several
lines, assignments, $VARIABLES, and files that a heredoc writes.

Nothing is run: `$(date)` and variables that nothing sets stay as written, and are reported.
"""

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from accel.diagnostics.errors import BadInput
from accel.diagnostics.redaction import SECRET_NAME

_ASSIGNMENT = re.compile(
    r"^\s*(?:(?:export|readonly|local|declare(?:\s+-\w+)*)\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$", re.DOTALL
)
_CAPTURED = re.compile(
    r"\s*(?:(?:export|local)\s+)?[A-Za-z_]\w*=[\"']?(?:\$\(\s*(.*)\)|`\s*([^`]*)`)[\"']?\s*$", re.DOTALL
)
"""Command whose output a variable takes."""
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_MARK = "\ue000{}\ue001"
_MARKED = re.compile("\ue000(\\d+)\ue001")
_DEFAULT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?[-=]([^${}`'\"\\]*)\}")
_SPECIAL = re.compile(r"\$(?:[0-9@*#?!]|'(?:\\.|[^'\\])*')")
"""Arguments of the script and other special parameters, and a quote that only some shells know."""
_HEREDOC = re.compile(r"(?<!<)<<(-?)\s*(?:'([A-Za-z_]\w*)'|\"([A-Za-z_]\w*)\"|\\?([A-Za-z_]\w*))")
_STREAMS = re.compile(r"[0-9]>&[0-9](?=[\s;|&)]|$)")
_TARGET = re.compile(r"(?:>\s*|\btee\s+(?:-a\s+)?)([^\s|&;<>]+)")
_YAML = re.compile(r"""^["']?[A-Za-z_][\w-]*["']?\s*:(\s|$)""")
_ENDS = (";", "&", "&&", "|", "||", ">", ">>", "<", "2>", "&>", "|&", "(", ")", "<<", "<<<")
MOMENT = re.compile(r"\$\((?:date|uuidgen|openssl|whoami|hostname|git)\b|`(?:date|uuidgen|git)\b|\$\{?RANDOM\}?$|\$\$$")
"""Parts of a name that differ in each submission."""
INSERTED_MAX = 2**17
"""Maximum number of characters that the variables of a text may become, since variables that hold others twice double
each time. A system's limit for one argument is the same (MAX_ARG_STRLEN)."""


@dataclass
class PastedCommand:
    """Words of the command, its unknown variables, and the faults of the text, each with its line."""

    argv: list[str] = field(default_factory=list[str])
    unknown: dict[str, str] = field(default_factory=dict[str, str])
    """Unknown variables by name (`JOB_NAME`, `$(date)`), as they are written."""
    notes: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    """Lines of flags that lack a backslash before them and so are not part of the command."""
    rest: list[str] = field(default_factory=list[str])
    """Words that follow the command in its line: a pipe, a second command."""
    files: dict[str, str] = field(default_factory=dict[str, str])
    """Text that heredocs write, by file name; `-` is the command's own input."""
    written: list[str] = field(default_factory=list[str])
    """Variables in heredocs that a shell would have replaced."""
    secrets: list[str] = field(default_factory=list[str])
    """Values of variables with the name of a secret, which no message may show."""
    inserted: int = 0


def is_command(text: str, program: str = "gcloud") -> bool:
    """Return whether a text is a pasted command rather than a document."""
    lines = text.splitlines()
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith(("#", "---"))), "")
    if _YAML.match(first) or first.lstrip().startswith("{"):
        return False  # a document, in which a program may call gcloud
    captured = rf"\s*(?:(?:export|local)\s+)?\w+=[\"']?(?:\$\(|`)\s*{program}\s"
    return any(_is_call(line, program) or re.match(captured, line) for line in lines)


def _is_call(line: str, program: str) -> bool:
    return re.match(rf"\s*(?:[$!%]\s*)?(?:[A-Z_]+=[\w./:-]*\s+)*{program}\s", line) is not None


def roles(text: str) -> list[str]:
    """Return the roles of AI Platform that commands of a text grant."""
    return list(dict.fromkeys(re.findall(r"roles/ml\.[A-Za-z]+", text))) if is_command(text) else []


def pasted_command(name: str, text: str, given: Mapping[str, str], verb: str, program: str = "gcloud") -> PastedCommand:
    """Return the one command of a program in a text. `verb`: words of it, such as `jobs submit training`; `given`:
    values of variables, which override the text's own.

    Raise BadInput if there is no command or several, if a quote is not closed, or if variables exceed INSERTED_MAX.
    """
    found = PastedCommand()
    variables: dict[str, str] = {}
    marks: list[str] = []
    commands: list[tuple[int, str]] = []
    called = re.compile(rf"\s{verb.replace(' ', chr(92) + 's+')}(\s|$)")
    found.secrets += [value for key, value in given.items() if SECRET_NAME.search(key)]
    for number, line, bodies in _joined(text, program, found):
        known = {**variables, **given}
        if (captured := _CAPTURED.match(line)) and called.search(line):
            inside = captured[1] or captured[2] or ""
            line = inside if _is_call(inside, program) else line
        is_it = _is_call(line, program) and called.search(line) is not None
        for heredoc in bodies:
            file = _written(_expanded(name, number, heredoc.file, known, marks, found), marks)
            found.files["-" if is_it else file] = _body(name, number, heredoc, known, found)
        if not line.strip() or line.lstrip().startswith(("#", "%%")):
            continue
        if not is_it and (assigned := _ASSIGNMENT.match(line)):
            words = _split(name, number, _expanded(name, number, assigned[2], known, marks, found))
            value = " ".join(words[:1])
            if variables.get(assigned[1], value) != value and assigned[1] not in given:
                found.notes.append(f"line {number}: sets {assigned[1]} again, and its value is the one that counts")
            variables[assigned[1]] = value
            if SECRET_NAME.search(assigned[1]):
                found.secrets.append(_written(variables[assigned[1]], marks))
        elif is_it:
            plain = re.sub(r"^\s*(?:[$!%]\s*)?(?:[A-Z_]+=[\w./:-]*\s+)*", "", line)
            commands.append((number, _expanded(name, number, plain, known, marks, found)))
        elif commands and re.match(r"\s*--?\w", line):
            found.lost.append(f"line {number}: begins with a flag, and the line before does not end with a backslash")
        elif roles(line) or bodies:
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


@dataclass
class _Heredoc:
    """Lines after `<<END`, up to the line END. `file`: the file that they are written to, as the line spells it."""

    end: str
    file: str
    quoted: bool
    tabs: bool
    lines: list[str] = field(default_factory=list[str])


def _joined(text: str, program: str, found: PastedCommand) -> list[tuple[int, str, list[_Heredoc]]]:
    """Return lines joined over continuations and open quotes, each with its first line's number and its heredocs."""
    joined: list[tuple[int, str, list[_Heredoc]]] = []
    parts: list[str] = []
    first, opened = 0, ""
    waiting: list[_Heredoc] = []
    lines = text.splitlines()
    ends = {line.strip() for line in lines}
    for number, line in enumerate(lines, 1):
        if waiting:
            body = waiting[0]
            if (line.lstrip("\t") if body.tabs else line).rstrip() == body.end:
                waiting.pop(0)
            else:
                body.lines.append(line.lstrip("\t") if body.tabs else line)
            continue
        if parts and not opened and line.lstrip().startswith("#"):
            found.notes.append(f"line {number}: a comment inside of the command, where a shell would end it")
            continue
        apart = False
        commented = None if opened else re.match(r"^(.*\S)?\s*\\\s+#.*$", line)
        if commented:
            found.notes.append(f"line {number}: a comment after the backslash, where a shell would end the command")
            line, apart = (commented[1] or "") + "\\", True
        elif not opened and re.search(r"\\\s+$", line):
            found.notes.append(f"line {number}: a space after the backslash, where a shell would end the command")
            line, apart = line.rstrip(), True
        before, reads = opened, _reads(parts[0] if parts else line, program)
        opened = _open_quote(line, before) if reads else ""
        goes_on = line.endswith("\\") and opened != "'"
        part = line[:-1] if goes_on else line
        if parts and (apart or (part[:1] == "-" and not before)):
            parts.append(" ")
        first = first if parts else number
        parts.append(part)
        if goes_on or opened:
            parts += [] if goes_on else ["\n"]
            parts += [" "] if goes_on and apart else []
            continue
        whole, parts = "".join(parts), []
        whole, waiting = _heredocs(whole, ends)
        joined.append((first, whole, list(waiting)))
    if parts:
        joined.append((first, "".join(parts).rstrip("\n"), []))
    return joined


def _reads(line: str, program: str) -> bool:
    """Return whether a line begins something that is read: a call of the program, or an assignment."""
    return _is_call(line, program) or _ASSIGNMENT.match(line) is not None


def _open_quote(line: str, opened: str) -> str:
    """Return the quote that is open after a line, given the one that was `opened` before it."""
    index = 0
    while index < len(line):
        letter = line[index]
        if letter == "\\" and opened != "'":
            index += 1
        elif opened:
            opened = "" if letter == opened else opened
        elif letter in "'\"":
            opened = letter
        elif letter == "#" and (index == 0 or line[index - 1].isspace()):
            break
        index += 1
    return opened


def _heredocs(line: str, ends: Collection[str]) -> tuple[str, list[_Heredoc]]:
    """Return the line without its heredocs' operators, and the heredocs. Operators in quotes do not count, nor do those
    whose end word no line has (`ends`: all lines)."""
    found: list[_Heredoc] = []
    if "<<" not in line or line.lstrip().startswith("#"):
        return line, found
    target = _TARGET.search(line)
    kept: list[str] = []
    at = seen = 0
    opened = ""
    for each in _HEREDOC.finditer(line):
        opened, seen = _open_quote(line[seen : each.start()], opened), each.start()
        if opened:
            continue
        end = each[2] or each[3] or each[4]
        if end not in ends:
            continue
        quoted = not each[4] or "\\" in each[0]
        file = target[1].strip("'\"") if target else ""
        found.append(_Heredoc(end, file, quoted, bool(each[1])))
        kept.append(line[at : each.start()])
        at = each.end()
    return "".join([*kept, line[at:]]), found


def _body(name: str, number: int, heredoc: _Heredoc, variables: Mapping[str, str], found: PastedCommand) -> str:
    """Return the text of a heredoc with the known variables replaced. Others stay for the reader of the document."""
    text = "".join(f"{line}\n" for line in heredoc.lines)
    if heredoc.quoted:
        return text

    def value(at: re.Match[str]) -> str:
        if at[0] in ("\\$", "\\`", "\\\\"):
            return at[0][1]
        if at[0] == "\\\n":
            return ""
        key = at[1] or at[2]
        if key not in variables or _MARKED.search(variables[key]):
            found.written.append(key)
            return at[0]
        _count(name, number, variables[key], found)
        return variables[key]

    return re.sub(rf"{_VARIABLE.pattern}|\\[$`\\\n]", value, text)


def _count(name: str, number: int, value: str, found: PastedCommand) -> None:
    found.inserted += len(value)
    if found.inserted > INSERTED_MAX:
        raise BadInput(f"{name}:{number}: its variables become more than {INSERTED_MAX} characters")


def _expanded(
    name: str, number: int, line: str, variables: Mapping[str, str], marks: list[str], found: PastedCommand
) -> str:
    """Return the line with the known variables replaced by their values and the unknown ones by marks. Variables in
    single quotes stay."""
    out: list[str] = []
    index, quoted = 0, False
    double = False
    last = {letter: line.rfind(letter) for letter in "})`"}
    while index < len(line):
        letter = line[index]
        if letter == "'" and not double:
            quoted = not quoted
        elif letter == '"' and not quoted:
            double = not double
        elif letter == "\\" and not quoted:
            escaped = line[index + 1 : index + 2]
            # In double quotes shlex would keep the backslash of these.
            out.append(escaped if escaped and escaped in "$`" else letter + escaped)
            index += 2
            continue
        elif letter in "$`" and not quoted:
            text, length = _value(line, index, last, variables, marks, found)
            _count(name, number, text, found)
            out.append(text)
            index += length
            continue
        out.append(letter)
        index += 1
    return "".join(out)


def _value(
    line: str, at: int, last: Mapping[str, int], variables: Mapping[str, str], marks: list[str], found: PastedCommand
) -> tuple[str, int]:
    """Return the replacement of the `$...` at a position of a line, and its length there. `last`: the last position of
    each closing bracket."""
    if variable := _VARIABLE.match(line, at):
        name = variable[1] or variable[2]
        if name in variables:
            return variables[name], variable.end() - at
        written = variable[0]
    elif default := _DEFAULT.match(line, at):
        if name := variables.get(default[1]):
            return name, default.end() - at
        found.notes.append(f"{default[1]} is not set here, and its default is used; --var {default[1]}=<value> sets it")
        return default[2], default.end() - at
    elif special := _SPECIAL.match(line, at):
        written = special[0]
    elif line.startswith("$(", at) and last[")"] > at:
        written = _parenthesis(line, at)
    elif line[at] == "`" and last["`"] > at:
        written = line[at : line.index("`", at + 1) + 1]
    elif line.startswith("${", at) and last["}"] > at:
        written = line[at : line.index("}", at) + 1]
    else:
        return line[at], 1
    marks.append(written)
    return _MARK.format(len(marks) - 1), len(written)


def _parenthesis(line: str, at: int) -> str:
    depth = 0
    for index in range(at, len(line)):
        depth += (line[index] == "(") - (line[index] == ")")
        if line[index] == ")" and depth == 0:
            return line[at : index + 1]
    return line[at:]


def _split(name: str, number: int, line: str) -> list[str]:
    lexer = shlex.shlex(_uncommented(line), posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    lexer.commenters = ""  # which would begin inside of a word
    try:
        return list(lexer)
    except ValueError as error:
        raise BadInput(f"{name}:{number}: cannot be read as a shell would: {str(error).lower()}") from None


def _uncommented(line: str) -> str:
    """Return the line without comments, each of which begins a word outside of quotes, and without `2>&1`."""
    if "#" not in line and ">&" not in line:
        return line
    out: list[str] = []
    opened, index = "", 0
    while index < len(line):
        letter = line[index]
        begins = not opened and (index == 0 or line[index - 1].isspace())
        if letter == "#" and begins:
            end = line.find("\n", index)
            index = end if end >= 0 else len(line)
            continue
        if begins and (joins := _STREAMS.match(line, index)):
            index = joins.end()
            continue
        if letter == "\\" and opened != "'":
            out.append(letter)
            index += 1
        elif opened:
            opened = "" if letter == opened else opened
        elif letter in "'\"":
            opened = letter
        out.append(line[index : index + 1])
        index += 1
    return "".join(out)


def _written(word: str, marks: list[str]) -> str:
    return _MARKED.sub(lambda mark: marks[int(mark[1])], word)


def _name(written: str) -> str:
    found = _VARIABLE.fullmatch(written)
    return (found[1] or found[2]) if found else written
