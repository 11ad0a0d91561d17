"""YAML text as plain values with the line of each, within limits and without surprises. Plain readers read `on:` as a
true key, `3.10` as 3.1, `010` as 8 and `1:30` as 90, keep the last of two equal keys, and expand a kilobyte of aliases
into gigabytes. Here each of these is a fault with its line, or text as it is written."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from . import no_break_spaces

Path = tuple[str | int, ...]

_yaml: Any = yaml
"""Untyped, since the stubs leave the contents of nodes and events unknown."""

BYTES_MAX = 2**20
DEPTH_MAX = 32
VALUES_MAX = 50_000
ALIASES_MAX = 100
DIGITS_MAX = 1000

_TEXT = "tag:yaml.org,2002:str"
_INTEGER = "tag:yaml.org,2002:int"
_NUMBERS = (_INTEGER, "tag:yaml.org,2002:float")
_PLAIN = (_TEXT, *_NUMBERS, "tag:yaml.org,2002:bool", "tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_BLANK = re.compile(rb"\xef?\xbb?\xbf?\s*(---|\.\.\.)?\s*(#.*|%.*)?\s*", re.DOTALL)
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_MISREAD = {
    r"[-+]?0[0-9_]+": "YAML reads a leading zero as octal",
    r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?": "YAML reads colons as base 60",
}
_PROBLEMS = {
    "mapping values are not allowed in this context": "a misplaced ':': wrong indent, or text without quotes",
    "could not find expected ':'": "a line without ':', or text over several lines that wants quotes",
    "did not find expected key": "wrong indent, or text that wants quotes",
    "did not find expected '-' indicator": "wrong indent: an item or key that is not under its neighbours",
    "did not find expected ',' or ']'": "a list that is not closed by ']', or a ',' is missing",
    "did not find expected ',' or '}'": "a mapping that is not closed by '}', or a ',' is missing",
    "found unexpected end of stream": "a quote that is not closed",
    "found undefined tag handle": "an unknown tag; job files have none",
    "found undefined alias": "an alias (*name) without its anchor (&name)",
}


@dataclass
class Fault(Exception):
    """A fault and its line; `path` is set for a single value that could not be read."""

    line: int
    words: str
    path: Path | None = None


@dataclass
class Tree:
    """The values, the line of each, and all faults that do not prevent reading the rest."""

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict[Path, int])
    faults: list[Fault] = field(default_factory=list[Fault])
    notes: list[str] = field(default_factory=list[str])
    """Values read differently from how they are written, each with its line."""

    def line(self, path: Path) -> int:
        """Return the line of the value at a path, or of the nearest one that holds it."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)


def documents(data: bytes) -> list[tuple[int, bytes]]:
    """Return each document with the number of lines above it, without empty ones, unless all are empty."""
    parts: list[tuple[int, list[bytes]]] = [(0, [])]
    begun = False
    for number, line in enumerate(data.splitlines(keepends=True)):
        # A line that begins like this is never inside a value: https://yaml.org/spec/1.2.2/#rule-c-forbidden
        begins = re.match(rb"---(\s|$)", line) is not None
        if begins and begun:  # directives and comments stand above it
            parts.append((number, []))
        begun = begun or begins or not _BLANK.fullmatch(line)
        parts[-1][1].append(line)
    written = [(above, b"".join(lines)) for above, lines in parts if not all(map(_BLANK.fullmatch, lines))]
    return written or [(0, data)]


def read(data: bytes, as_written: frozenset[str] = frozenset(), at: Path = ()) -> Tree:
    """Read one document, or its part at the path `at`. Numbers below the keys in `as_written` stay text, as spelt.
    Raise Fault if nothing can be read."""
    text, lines = no_break_spaces.in_yaml(_text(data))
    _bounds(text)
    try:
        node: Any = _yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise _explained(error, text) from error
    if node is None:
        raise Fault(1, "is empty")
    tree = _Reader(as_written).tree(node, at)
    tree.notes += [no_break_spaces.note(lines)] if lines else []
    return tree


def _text(data: bytes) -> str:
    if len(data) > BYTES_MAX:
        raise Fault(1, f"is larger than {BYTES_MAX // 2**20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Fault(data.count(b"\n", 0, error.start) + 1, "is not UTF-8 text") from error
    # Characters that YAML forbids (https://yaml.org/spec/1.1/#c-printable); libyaml does not report the line.
    strange = re.search("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    if strange:
        at = text.count("\n", 0, strange.start()) + 1
        raise Fault(at, f"holds the control character U+{ord(strange[0]):04X}")
    return text


def _bounds(text: str) -> None:
    """Check limits on events first: composing nodes recurses in C, and aliases share what they expand to."""
    depth = values = aliases = documents = 0
    try:
        for event in _events(text):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise Fault(line, "a second document begins; a file has one")
            elif isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.AliasEvent):
                aliases += 1
            values += isinstance(event, yaml.NodeEvent)
            for name, count, limit in (
                ("levels", depth, DEPTH_MAX),
                ("values", values, VALUES_MAX),
                ("aliases", aliases, ALIASES_MAX),
            ):
                if count > limit:
                    raise Fault(line, f"holds more than {limit} {name}")
    except yaml.YAMLError as error:
        raise _explained(error, text) from error


def _events(text: str) -> Iterator[yaml.Event]:
    yield from _yaml.parse(text, Loader=yaml.CSafeLoader)


def _explained(error: yaml.YAMLError, text: str) -> Fault:
    mark: yaml.Mark | None = getattr(error, "problem_mark", None)
    problem: str = getattr(error, "problem", None) or "cannot be read"
    if mark is None:
        return Fault(1, f"is not YAML: {problem}")
    line = mark.line + 1
    if text.splitlines()[mark.line : line] and "\t" in text.splitlines()[mark.line][: mark.column + 1]:
        return Fault(line, "is not YAML: a tab; indent with spaces")
    return Fault(line, f"is not YAML: {_PROBLEMS.get(problem, problem)}")


class _Reader:
    def __init__(self, as_written: frozenset[str]) -> None:
        self._as_written = as_written
        self._loader: Any = yaml.CSafeLoader("")
        self._tree = Tree()
        self._open: set[int] = set()
        self._values = 0

    def tree(self, node: yaml.Node, at: Path) -> Tree:
        self._tree.value = self._value(node, at)
        return self._tree

    def _value(self, node: yaml.Node, path: Path) -> Any:
        line = node.start_mark.line + 1
        self._tree.lines.setdefault(path, line)
        self._values += 1
        if self._values > VALUES_MAX:
            raise Fault(line, f"aliases unfold into more than {VALUES_MAX} values")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if not self._plain(node, path, _COLLECTIONS):
            return None
        if id(node) in self._open:
            raise Fault(line, "an anchor holds itself")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self._open.remove(id(node))

    def _mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag.endswith(":merge"):
                merged += value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                continue
            key = self._key(key_node)
            if key is None:
                continue
            if key in lines:
                self._fault(line, f"{_dotted((*path, key))}: is set twice, here and in line {lines[key]}")
                continue
            lines[key] = line
            self._tree.lines[(*path, key)] = line
            values[key] = self._value(value_node, (*path, key))
        for base in merged:
            inherited = self._value(base, path)
            if not isinstance(inherited, dict):
                self._fault(base.start_mark.line + 1, "<<: takes a mapping or a list of mappings")
                continue
            values = cast(dict[str, Any], inherited) | values
        return values

    def _key(self, node: yaml.Node) -> str | None:
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode):
            self._fault(line, "a key that is itself a list or a mapping; keys are text")
        elif node.tag == _TEXT:
            return node.value
        else:
            self._fault(
                line,
                f"key `{node.value[:60]}`: YAML reads it as {_kind(node)}, not as text; put it in quotes",
            )
        return None

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        line = node.start_mark.line + 1
        if node.tag == _TIMESTAMP or (node.tag in _NUMBERS and path and path[0] in self._as_written):
            return node.value
        if not self._plain(node, path, _PLAIN):
            return None
        if node.tag in _NUMBERS and (reading := _misread(node.value)):
            # Not even constructed: PyYAML takes minutes for a long base-60 number.
            self._fault(line, f"{_dotted(path)}: {reading}; write a plain number, or text in quotes", path)
            return None
        try:
            value = self._loader.construct_object(node)
        except (ValueError, OverflowError, yaml.YAMLError):
            self._fault(line, f"{_dotted(path)}: is not a number that can be read", path)
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self._fault(line, f"{_dotted(path)}: must be a number, is {node.value[:60]}", path)
            return None
        return value

    def _plain(self, node: yaml.Node, path: Path, tags: tuple[str, ...]) -> bool:
        if node.tag in tags:
            return True
        said = f"{_dotted(path)}: the tag {node.tag[:60]} has no place in a job file"
        self._fault(node.start_mark.line + 1, said, path)
        return False

    def _fault(self, line: int, words: str, path: Path | None = None) -> None:
        self._tree.faults.append(Fault(line, words.removeprefix(": "), path))


def _misread(number: str) -> str | None:
    if len(number) > DIGITS_MAX:
        return f"a number of more than {DIGITS_MAX} characters"
    return next((said for pattern, said in _MISREAD.items() if re.fullmatch(pattern, number)), None)


def _kind(node: yaml.ScalarNode) -> str:
    name = node.tag.rpartition(":")[2]
    if name == "bool":
        return f"the boolean {str(node.value.lower() in ('yes', 'true', 'on')).lower()}"
    return {"null": "nothing", "int": "a number", "float": "a number", "timestamp": "a date"}.get(name, name)


def _dotted(path: Path) -> str:
    return ".".join(str(part) for part in path)
