"""Expansion of a script's variables and lists as by a shell. Nothing is run: what is not known stays as written."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from accel.diagnostics.errors import BadInput

_PLAIN = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*|[1-9]):?[-=]", re.ASCII)
_LIST = re.compile(r"\$\{([A-Za-z_]\w*)\[([@*])\]\}", re.ASCII)
_IN_BODY = re.compile(
    rf"\\[$`\\\n]|{_PLAIN.pattern}|{_DEFAULT.pattern}[^{{}}]*\}}|\$\{{([A-Za-z_]\w*)\[[@*]\]\}}", re.ASCII
)
_LIST_PART = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?<!\S)#[^\n]*|[()]", re.DOTALL)
_SPECIAL = re.compile(r"\$(?:[0-9@*#?!]|'(?:\\.|[^'\\])*')")
"""Arguments of the script and other special parameters, and a quote that only some shells know."""
_PLACE = re.compile(r"<[A-Za-z][\w.-]*(?: (?!\d+>)[\w.,-]+){0,8}>(?![\w(])")
"""Place of a page to be filled in, as `<your project>`. A shell would read a file of that name."""
_TOKEN = re.compile(
    r"([ \t\r\n]+)|([0-9][<>]+|[;&|<>]+)|'([^']*)'|\"([^\"\\]*(?:\\.[^\"\\]*)*)\"|\\(.)|([^ \t\r\n;&|<>'\"\\]+)|(.)",
    re.DOTALL,
)
"""Part of a word, or what stands between words. The last group is a fault."""
_STREAMS = re.compile(r"[0-9]>&[0-9](?=[\s;|&)]|$)")
_MARKED = re.compile("\ue000(\\d+)\ue001")
INSERTED_MAX = 2**17
"""Maximum number of characters that the variables of a text may become, since variables that hold others twice double
each time. A system's limit for one argument is the same (MAX_ARG_STRLEN)."""
BRACES_MAX = 4096
"""Maximum length of `${NAME:-default}`."""
DEPTH_MAX = 20


@dataclass
class Expansion:
    """Variables and lists of a script. `given`: values of the user, which override the script's own."""

    given: Mapping[str, str]
    two_ways: frozenset[str] = frozenset()
    """Variables that the script writes as `$NAME` and as `${NAME}`; where one is not known, it is `${NAME}`."""
    texts: dict[str, str] = field(default_factory=dict[str, str])
    lists: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    marks: list[str] = field(default_factory=list[str])
    """Parts that are not known, as they are written. A mark stands for each in a line."""
    notes: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])
    """Names of the lists whose words were put in."""
    inserted: int = 0

    def value(self, name: str) -> str | None:
        """Return None if the variable is not known; the value of a list is its first word."""
        if name in self.given:
            return self.given[name]
        return self.lists[name][0] if self.lists.get(name) else self.texts.get(name)

    def line(self, place: str, text: str, *, is_value: bool = False) -> str:
        """Return a line with its variables replaced and quoted, so that split() returns the words that a shell makes.
        `is_value`: the line is the value of an assignment, which a shell does not split. Raise BadInput if the
        variables exceed INSERTED_MAX."""
        out: list[str] = []
        index, quoted, double = 0, False, False
        last = {letter: text.rfind(letter) for letter in "})`"}
        while index < len(text):
            letter = text[index]
            if letter == "'" and not double:
                quoted = not quoted
            elif letter == '"' and not quoted:
                whole = None if double or is_value else _LIST.match(text, index + 1)
                if whole and whole[2] == "@" and whole[1] in self.lists and text.startswith('"', whole.end()):
                    out.append(" ".join(map(shlex.quote, self._words(place, whole[1]))))
                    index = whole.end() + 1
                    continue
                double = not double
            elif letter == "\\" and not quoted:
                escaped = text[index + 1 : index + 2]
                # In double quotes shlex would keep the backslash of these.
                out.append(escaped if escaped and escaped in "$`" else letter + escaped)
                index += 2
                continue
            elif letter in "$`" and not quoted:
                found, index = self._replaced(place, text, index, last, double, is_value)
                out.append(found)
                continue
            elif letter == "<" and not quoted and not double and (named := _PLACE.match(text, index)):
                out.append(f"'{named[0]}'")
                index = named.end()
                continue
            out.append(letter)
            index += 1
        return "".join(out)

    def body(self, place: str, text: str) -> tuple[str, list[str]]:
        """Return a heredoc's text with the known variables replaced, and the names of the unknown ones, which stay as
        written. Raise BadInput if the variables exceed INSERTED_MAX."""
        out: list[str] = []
        unknown: list[str] = []
        at = 0
        for found in _IN_BODY.finditer(text):
            plain, name = found[1] or found[2], found[3]
            if plain or name:
                value = self.value(plain or name)
            elif found[4]:
                value = " ".join(self.lists[found[4]]) if found[4] in self.lists else None
            else:
                value = found[0][1].strip("\n")
            if value is None or _MARKED.search(value):
                unknown += [plain] if plain else []
                continue
            out += [text[at : found.start()], self._count(place, value)]
            at = found.end()
        return "".join([*out, text[at:]]), unknown

    def written(self, text: str) -> str:
        """Return the text with the parts that are not known in place of their marks."""
        return _MARKED.sub(lambda mark: self.marks[int(mark[1])], text)

    def unknown(self, words: list[str]) -> dict[str, str]:
        """Return the unknown parts of words as they are written, by the names of variables if they have one."""
        used = {self.marks[int(mark)] for word in words for mark in _MARKED.findall(word)}
        return {_name(written): written for written in self.marks if written in used}

    def _replaced(
        self, place: str, text: str, at: int, last: Mapping[str, int], double: bool, is_value: bool
    ) -> tuple[str, int]:
        """Return the quoted replacement of the `$...` at a position of a line, and the position of its end."""
        found = _LIST.match(text, at)
        if found and found[1] in self.lists:
            words = self._words(place, found[1])
            if double:
                return ('" "' if found[2] == "@" and not is_value else " ").join(map(_escaped, words)), found.end()
            return (shlex.quote(" ".join(words)) if is_value else " ".join(map(_split_apart, words))), found.end()
        value, end = self._value(place, text, at, last, 0)
        if double:
            return _escaped(value), end
        return (shlex.quote(value) if is_value else _split_apart(value)), end

    def _value(self, place: str, text: str, at: int, last: Mapping[str, int], depth: int) -> tuple[str, int]:
        """Return the replacement of the `$...` at `at`, and its end. `last`: position of each last closing bracket."""
        if variable := _PLAIN.match(text, at):
            value = self.value(variable[1] or variable[2])
            if value is not None:
                return self._count(place, value), variable.end()
            name, end = variable[1] or variable[2], variable.end()
            return self._marked(place, f"${{{name}}}" if name in self.two_ways else variable[0]), end
        if special := _SPECIAL.match(text, at):
            end = special.end()
            if (value := self.given.get(special[0][1:])) is not None:
                return self._count(place, value), end
        elif text.startswith("$(", at) and last[")"] > at:
            end = _closing(text, at + 1, "()") or len(text)
        elif text[at] == "`" and last["`"] > at:
            end = text.index("`", at + 1) + 1
        elif text.startswith("${", at) and last["}"] > at:
            end = _closing(text, at + 1, "{}", BRACES_MAX) or text.index("}", at) + 1
            default = _DEFAULT.match(text, at, end)
            if (value := self.given.get(text[at + 2 : end - 1])) is not None:
                return self._count(place, value), end
            if default and (value := self.value(default[1])):
                return self._count(place, value), end
            inside = text[default.end() : end - 1] if default else "'"
            if default and depth < DEPTH_MAX and not re.search(r"['\"\\]", inside):
                name = default[1]
                shown = f"${name}" if name.isdigit() else name
                self.notes.append(f"{shown} is not set here, and its default is used; --var {name}=<value> sets it")
                return self._default(place, inside, depth), end
        else:
            return text[at], at + 1
        return self._marked(place, text[at:end]), end

    def _marked(self, place: str, written: str) -> str:
        """Return the mark of a part that is not known."""
        self.marks.append(written)
        return self._count(place, f"\ue000{len(self.marks) - 1}\ue001")

    def _default(self, place: str, text: str, depth: int) -> str:
        out: list[str] = []
        at = 0
        last = {letter: text.rfind(letter) for letter in "})`"}
        while found := re.compile(r"[$`]").search(text, at):
            value, end = self._value(place, text, found.start(), last, depth + 1)
            out += [text[at : found.start()], value]
            at = end
        return "".join([*out, text[at:]])

    def _words(self, place: str, name: str) -> list[str]:
        self.used.add(name)
        for word in self.lists[name]:
            self._count(place, f"{word} ")
        return self.lists[name]

    def _count(self, place: str, value: str) -> str:
        self.inserted += len(value)
        if self.inserted > INSERTED_MAX:
            raise BadInput(f"{place}: its variables become more than {INSERTED_MAX} characters")
        return value


def two_ways(text: str) -> frozenset[str]:
    """Return the variables that a text writes as `$NAME` and as `${NAME}`."""
    found = _PLAIN.findall(text)
    return frozenset({name for name, _ in found} & {name for _, name in found} - {""})


def list_end(text: str, at: int) -> int:
    """Return the position of the bracket that ends the list `NAME=(words)` whose first word is at a position."""
    depth = 1
    for part in _LIST_PART.finditer(text, at):
        depth += (part[0] == "(") - (part[0] == ")")
        if not depth:
            return part.start()
    return len(text)


def split(place: str, line: str) -> list[str]:
    """Return the words and operators of a line. Raise BadInput if a quote is not closed."""
    words: list[str] = []
    parts: list[str] = []
    for found in _TOKEN.finditer(_uncommented(line)):
        blank, operator, single, double, escaped, plain, fault = found.groups()
        if fault:
            said = "no escaped character" if fault == "\\" else "no closing quotation"
            raise BadInput(f"{place}: cannot be read as a shell would: {said}")
        if blank or operator:
            words += ["".join(parts)] if parts else []
            words += [operator] if operator else []
            parts = []
        elif double is not None:
            parts.append(re.sub(r"\\([\"\\])", r"\1", double))
        else:
            parts.append(single if single is not None else escaped or plain)
    return [*words, "".join(parts)] if parts else words


def _split_apart(value: str) -> str:
    """Return a value so that a shell splits it at blanks and takes everything else as it is."""
    return value if _MARKED.fullmatch(value) else re.sub(r"\S+", lambda word: shlex.quote(word[0]), value)


def _escaped(value: str) -> str:
    """Return a value for a place in double quotes."""
    return re.sub(r'["\\]', r"\\\g<0>", value)


def _closing(text: str, at: int, brackets: str, length: int | None = None) -> int:
    """Return the position after the closing bracket, or 0 if it does not follow within a length."""
    opening, closing = brackets
    depth = 0
    for index in range(at, len(text) if length is None else min(len(text), at + length)):
        depth += (text[index] == opening) - (text[index] == closing)
        if not depth:
            return index + 1
    return 0


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


def _name(written: str) -> str:
    found = _PLAIN.fullmatch(written)
    return (found[1] or found[2]) if found else written
