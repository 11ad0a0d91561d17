"""Reader of a pasted command, with comments, continuations, quotes, assignments, $VARIABLES, lists and heredocs.
Nothing is run: `$(date)` and variables that nothing sets stay as written, and are reported."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from accel.diagnostics.errors import BadInput
from accel.diagnostics.redaction import SECRET_NAME

from .heredocs import Heredoc, open_blocks, open_list, split_heredocs
from .report import Report
from .script_text import CALL, DECLARATION, ENVIRONMENT, with_calls
from .shell_expansion import Expansion, list_end, split, two_ways

_SETS = r"^\s*(?:(?:export|readonly|local|declare|typeset)(?:\s+-\w+)*\s+)?([A-Za-z_][A-Za-z0-9_]*)(\+?)="
_ASSIGNMENT = re.compile(rf"{_SETS}(.*)$", re.DOTALL)
_LIST = re.compile(rf"{_SETS}\(")
_LIST_CALL = re.compile(r"\s*\"\$\{([A-Za-z_]\w*)\[@\]\}\"")
"""List that holds a command."""
_LIST_CHANGE = re.compile(
    r"\b([A-Za-z_]\w*)(?:\+?=\(|\[[^\]\s]*\]\+?=)|\b(?:mapfile|readarray|read)\s(?:[^;|&<]*\s)?(\w+)\s*(?:$|[;|&<])"
)
"""Change of a list, in a line that is not read."""
_CALL = re.compile(rf"{CALL}[\"']?")
_CAPTURED = re.compile(rf"\s*{DECLARATION}[A-Za-z_]\w*=[\"']?(?:\$\(\s*(.*)\)|`\s*([^`]*)`)[\"']?\s*$", re.DOTALL)
"""Command whose output a variable takes."""
_PROMPT = r"\s*(?:[$!%]\s*)?"
_YAML = re.compile(r"""^(?:-\s+)?["']?[A-Za-z_][\w-]*["']?\s*:(\s|$)""")
REST = "after the command"
"""Field of a report for words that follow a command."""
_ENDS = (";", "&", "&&", "|", "||", ">", ">>", "<", "2>", "&>", "|&", "(", ")", "<<", "<<<")
_OF_STREAM = re.compile(r"[0-9][<>]+")
"""Redirection of one stream, as in `2> log`."""
_FILE_INPUT = re.compile(r"< [^(;&|<>]")
"""Redirection of the command's input, which `<(command)` is not."""
MOMENT = re.compile(r"\$\((?:date|uuidgen|openssl|whoami|hostname|git)\b|`(?:date|uuidgen|git)\b|\$\{?RANDOM\}?$|\$\$$")
"""Parts of a name that differ in each submission."""


@dataclass
class PastedCommand:
    """Words of the command, its unknown variables, and the faults of the text, each with its line."""

    argv: list[str] = field(default_factory=list[str])
    line: int = 1
    unknown: dict[str, str] = field(default_factory=dict[str, str])
    """Unknown variables by name (`JOB_NAME`, `$(date)`), as they are written."""
    notes: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    """Unread lines that may be the command's: flags below a line without backslash, conditional changes of a list."""
    rest: list[str] = field(default_factory=list[str])
    """Words that follow the command in its line: a pipe, a second command."""
    input: str = ""
    """File that the command reads as its input (`< FILE`, the first two words of `rest`)."""
    files: dict[str, str] = field(default_factory=dict[str, str])
    """Text that heredocs write, by file name; `-` is the command's own input."""
    heredocs: dict[str, Heredoc] = field(default_factory=dict[str, Heredoc])
    """Heredocs as they are written, by the same names."""
    written: list[str] = field(default_factory=list[str])
    """Variables in heredocs that a shell would have replaced."""
    secrets: list[str] = field(default_factory=list[str])
    """Values of variables with the name of a secret, which no message may show."""

    def take_input(self) -> str:
        """Return the file that is the command's input, and remove it from what follows the command. Return an empty
        text if there is none, or if a heredoc is the input."""
        if not self.input or "-" in self.files:
            return ""
        if self.rest[:1] == ["<"]:
            del self.rest[:2]
        return self.input

    def report_rest(self, report: Report) -> None:
        """Report what follows the command, and its lines."""
        if self.rest:
            report.changed(REST, None, "is not the command's")
        self.report_lines(report)

    def report_lines(self, report: Report) -> None:
        for fault in self.lost:
            report.refuse("the command", fault)
        for note in self.notes:
            report.note("the command", note)


def is_command(text: str, program: str = "gcloud") -> bool:
    """Return whether a text is a pasted command rather than a document."""
    lines = text.splitlines()
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith(("#", "---"))), "")
    if _YAML.match(first) or first.lstrip().startswith("{"):
        return False  # a document, in which a program may call gcloud
    captured = rf"\s*{DECLARATION}\w+=[\"']?(?:\$?\(|`)\s*{program}\s"
    lines = with_calls(text).splitlines()
    return any(_is_call(line, program) or re.match(captured, line) for line in lines)


def _is_call(line: str, program: str) -> bool:
    return re.match(rf"{_PROMPT}{ENVIRONMENT}{program}\s", line) is not None


def roles(text: str) -> list[str]:
    """Return the roles of AI Platform that commands of a text grant."""
    return list(dict.fromkeys(re.findall(r"roles/ml\.[A-Za-z]+", text))) if is_command(text) else []


def pasted_command(name: str, text: str, given: Mapping[str, str], verb: str, program: str = "gcloud") -> PastedCommand:
    """Read a text's one command. `verb`: words of it, such as `jobs submit training`, or empty; `given`: values of
    variables, which override the text's own. Raise BadInput if there is no command or several, if a quote is not
    closed, or if variables exceed INSERTED_MAX."""
    reader = _Reader(name, Expansion(given, two_ways(text)), verb, program)
    for number, line, bodies in _joined(text, program, reader.found):
        reader.read(number, line, bodies)
    return reader.command()


class _Reader:
    def __init__(self, name: str, known: Expansion, verb: str, program: str) -> None:
        self.name, self.program = name, program
        self.label = f"{program} ... {verb}" if verb else program
        self.called = re.compile(rf"\s{verb.replace(' ', chr(92) + 's+')}(\s|$)" if verb else "")
        self.found = PastedCommand(secrets=[value for key, value in known.given.items() if SECRET_NAME.search(key)])
        known.notes = self.found.notes
        self.known = known
        self.commands: list[tuple[int, str]] = []
        self.changes: dict[str, int] = {}
        """Lines that change a list and are not read, by the list's name."""
        self.unsure: set[str] = set()
        """Variables with several values, of which a condition chooses one."""
        self.depth = 0
        """Number of conditions and loops around a line."""

    def read(self, number: int, line: str, bodies: list[Heredoc]) -> None:
        place = f"{self.name}:{number}"
        if (captured := _CAPTURED.match(line)) and self.called.search(line):
            inside = captured[1] or captured[2] or ""
            line = inside if _is_call(inside, self.program) else line
        is_it = _is_call(line, self.program) and self.called.search(line) is not None
        for heredoc in bodies:
            name = split(place, self.known.line(place, heredoc.file, is_value=True))[:1]
            file = "-" if is_it else self.known.written("".join(name))
            text, unknown = (heredoc.text, list[str]()) if heredoc.quoted else self.known.body(place, heredoc.text)
            self.found.files[file], self.found.heredocs[file] = text, heredoc
            self.found.written += unknown
        if not line.strip() or line.lstrip().startswith(("#", "%%")):
            return
        whole = _LIST_CALL.match(line)
        if whole and self.known.lists.get(whole[1], [])[:1] == [self.program]:
            self.commands.append((number, self.known.line(place, line)))
        elif (called := _CALL.match(line)) and self._holds(called[2] or called[3]):
            value = self.known.texts[called[2] or called[3]]
            text = f"{value}{line[called.end() :]}" if called[1] else line
            self.commands.append((number, self.known.line(place, text)))
        elif is_it:
            self._call(number, line)
        elif listed := _LIST.match(line):
            self._set_list(number, line, listed)
        elif assigned := _ASSIGNMENT.match(line):
            self._set(number, assigned)
        else:
            self._skip(number, line, is_known=bool(roles(line) or bodies))

    def command(self) -> PastedCommand:
        """Raise BadInput if there is no command, or several."""
        found, known = self.found, self.known
        if len(self.commands) != 1:
            said = f"must hold one command `{self.label}`, holds {len(self.commands) or 'none'}"
            raise BadInput(f"{self.name}: {said}")
        found.line, text = self.commands[0]
        words = split(f"{self.name}:{found.line}", text)
        end = _end(words)
        redirection = words[end : end + 2] if _FILE_INPUT.match(" ".join(words[end : end + 2])) else []
        if redirection:  # the command goes on behind it
            words = [*words[:end], *words[end + 2 :]]
            end = _end(words)
            found.input = known.written(redirection[1])
        found.rest = [known.written(word) for word in [*redirection, *words[end:]]]
        found.argv = [known.written(word) for word in words[:end]]
        found.unknown = known.unknown([*redirection, *words[:end]])
        for name, number in self.changes.items():
            if name in known.used:
                said = "under a condition, or in another way that is not read"
                fix = "write the words themselves into the command"
                found.lost.append(f"line {number}: changes the list {name} {said}: {fix}")
        return found

    def _holds(self, name: str) -> bool:
        """Return whether a variable holds the command."""
        value = self.known.texts.get(name, "")
        return _is_call(value, self.program) and self.called.search(value) is not None

    def _call(self, number: int, line: str) -> None:
        before = re.match(rf"{_PROMPT}({ENVIRONMENT})", line)
        if before and (names := re.findall(r"(?:^|\s)([A-Za-z_]\w*)=", before[1])):
            said = f"sets {', '.join(names)} for {self.program} alone, which no job has"
            self.found.notes.append(f"line {number}: {said}")
        plain = line[before.end() :] if before else line
        self.commands.append((number, self.known.line(f"{self.name}:{number}", plain)))

    def _set(self, number: int, assigned: re.Match[str]) -> None:
        """Read `NAME=value`, `NAME+=value`, and further ones in the same line."""
        place, (name, adds, text) = f"{self.name}:{number}", assigned.groups()
        first, *more = split(place, self.known.line(place, text, is_value=True)) or [""]
        before = self.known.texts.get(name)
        value = f"{before or ''}{first}" if adds else first
        is_other = before is not None and self.known.written(before) != self.known.written(value)
        is_chosen = (self.depth or adds) if name in self.unsure else self.depth and is_other and not adds
        if is_chosen and name not in self.known.given:
            self.known.texts.pop(name, None)
            self.unsure.add(name)
            self.found.notes.append(f"line {number}: sets {name} under a condition, and its value is not known")
            return
        if adds and self.depth:
            self.found.notes.append(f"line {number}: adds to {name} under a condition, and is taken as it stands")
        elif is_other and not adds and name not in self.known.given:
            self.found.notes.append(f"line {number}: sets {name} again, and its value is the one that counts")
        values = {name: value}
        for word in more:
            key, equals, value = word.partition("=")
            if word not in (";", "&&") and not (equals and re.fullmatch(r"[A-Za-z_]\w*", key)):
                break
            values |= {key: value} if equals else {}
        for key, value in values.items():
            self.known.lists.pop(key, None)
            self.known.texts[key] = value
            self.unsure.discard(key)
            if SECRET_NAME.search(key):
                self.found.secrets.append(self.known.written(value))

    def _set_list(self, number: int, line: str, listed: re.Match[str]) -> None:
        place, (name, adds) = f"{self.name}:{number}", listed.groups()
        end = list_end(line, listed.end())
        words = split(place, self.known.line(place, line[listed.end() : end]))
        rest = line[end + 1 :].strip()
        if self.depth or (rest and not rest.startswith("#")) or any(word in _ENDS for word in words):
            self._change(name, number)
            return
        before = self.known.lists.get(name, []) if adds else []
        self.known.lists[name] = [*before, *words]

    def _skip(self, number: int, line: str, *, is_known: bool) -> None:
        if self.commands and re.match(r"\s*--?\w", line):
            said = "begins with a flag, and the line before does not end with a backslash"
            self.found.lost.append(f"line {number}: {said}")
            return
        for changed in _LIST_CHANGE.finditer(line):
            self._change(changed[1] or changed[2], number)
        self.depth = max(0, self.depth + open_blocks(line))
        if not is_known:
            said = f"is not read: it is neither `{self.label}` nor NAME=value"
            self.found.notes.append(f"line {number}: {said}")

    def _change(self, name: str, number: int) -> None:
        if not self.commands:
            self.changes.setdefault(name, number)


def _end(words: list[str]) -> int:
    return next((at for at, word in enumerate(words) if word in _ENDS or _OF_STREAM.fullmatch(word)), len(words))


def _joined(text: str, program: str, found: PastedCommand) -> list[tuple[int, str, list[Heredoc]]]:
    """Return (number of the first line, text, heredocs) for lines joined over continuations, open quotes and lists."""
    joined: list[tuple[int, str, list[Heredoc]]] = []
    parts: list[str] = []
    first, opened, depth, is_list = 0, "", 0, False
    waiting: list[Heredoc] = []
    lines = text.splitlines()
    ends = {line.strip() for line in lines}
    for number, line in enumerate(lines, 1):
        if waiting:
            waiting[0].above = waiting[0].above or number - 1
            if not waiting[0].take(line):
                waiting.pop(0)
            continue
        is_list = is_list if parts else _LIST.match(line) is not None
        if parts and not opened and line.lstrip().startswith("#"):
            if not is_list:
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
        opened, depth = open_list(line, before, depth if parts else 0) if reads else ("", 0)
        goes_on = line.endswith("\\") and opened != "'"
        part = line[:-1] if goes_on else line
        if parts and (apart or (part[:1] == "-" and not before)):
            parts.append(" ")
        first = first if parts else number
        parts.append(part)
        if goes_on or opened or (is_list and depth > 0):
            parts += [] if goes_on else ["\n"]
            parts += [" "] if goes_on and apart else []
            continue
        whole, parts = "".join(parts), []
        whole, waiting = split_heredocs(whole, ends)
        joined.append((first, whole, list(waiting)))
    if parts:
        joined.append((first, "".join(parts).rstrip("\n"), []))
    return joined


def _reads(line: str, program: str) -> bool:
    return _is_call(line, program) or _ASSIGNMENT.match(line) is not None
