"""Reader of YAML or JSON that was written for another tool. Numbers stay as spelt, and errors name their line."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from accel.diagnostics import messages, no_break_spaces, yaml_positions
from accel.diagnostics.errors import BadInput

from .heredoc_documents import document_in
from .script_text import with_quoted_values, with_quotes
from .shell import is_command

Json = dict[str, Any]
STDIN = ("-", "/dev/stdin")
"""Names of a command's own input."""


class _Everything(frozenset[str]):
    """Set that contains every key, so that all numbers stay text: `2.10` is a version, and `1e3` an argument."""

    def __contains__(self, key: object) -> bool:
        return True


class ReadDocument(dict[str, Any]):
    """Mapping of a document. `places`: file and line where each of its fields is written, by path."""

    def __init__(self, values: Json, places: dict[str, str]) -> None:
        super().__init__(values)
        self.places = places


def read(name: str, data: bytes) -> Json:
    """Raise BadInput with file and line if the document cannot be read."""
    text = data.decode("utf-8-sig", errors="replace")
    if (inside := document_in(text)) is not None:
        text, data = inside, inside.encode()
    if text.lstrip().startswith(("{", "[", "//", "/*")):
        return _json(name, data)
    if b"{{" in data:
        data = with_quoted_values(data.decode("utf-8-sig", errors="surrogateescape")).encode(errors="surrogateescape")
    try:
        tree = yaml_positions.read(data, _Everything())
    except yaml_positions.Fault as fault:
        line, said = _diagnosis(data, fault)
        raise BadInput(f"{name}:{line}: {said}") from None
    if tree.faults:
        raise BadInput(f"{name}:{tree.faults[0].line}: {tree.faults[0].words}")
    return _mapping(name, tree.value, {_dotted(path): line for path, line in tree.lines.items()})


def file_bytes(path: Path) -> bytes:
    """Raise OSError if the file cannot be read, and BadInput if it is larger than a document may be."""
    with path.open("rb") as opened:
        return check_size(str(path), opened.read(yaml_positions.BYTES_MAX + 1))


def named_file(name: str, option: str, path: str) -> tuple[bytes, str]:
    """Return the content of a file that an option names, and its place: relative to the document `name`, or to the
    present folder for `stdin`. Raise BadInput if it cannot be read."""
    if path in STDIN:
        said = "is the command's input, which is not in the text; write a file's name"
        raise BadInput(f"{name}: {option} {path}: {said}")
    at = Path(path) if name == "stdin" else Path(name).parent / path
    try:
        return file_bytes(at), str(at)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise BadInput(f"{name}: {option} {path[:80]}: cannot be read: {said}") from None


def check_size(name: str, data: bytes) -> bytes:
    """Return the data unchanged. Raise BadInput if it is larger than a document may be."""
    if len(data) > yaml_positions.BYTES_MAX:
        raise BadInput(f"{messages.printable_name(name)}: is larger than {yaml_positions.BYTES_MAX // 2**20} MiB")
    return data


def read_as_spaces(name: str, data: bytes, say: Callable[[str], None]) -> bytes:
    """Return a file in any importable form with spaces in place of no-break spaces, and report these with `say`."""
    text = data.decode("utf-8-sig", errors="ignore")
    if text.lstrip().startswith(("{", "[")):
        plain, lines = no_break_spaces.in_text(text, "json")
    elif is_command(text):
        plain, lines = no_break_spaces.in_text(text, "shell")
    else:
        plain, lines = no_break_spaces.in_yaml(text)
    if not lines:
        return data
    say(f"{name}:{no_break_spaces.note(lines)}")
    return plain.encode()


def _dotted(path: yaml_positions.Path) -> str:
    """Return a path as leaves() spells it."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _mapping(name: str, value: Any, lines: dict[str, int]) -> Json:
    if not isinstance(value, dict):
        raise BadInput(f"{name}: must be a mapping of fields, is {messages.display(value)}")
    found: set[str] = set()
    for path, _ in leaves(value):
        if path in found:  # the key `a.b` beside a mapping `a` with `b`
            said = f"{messages.printable_name(path)}: is set twice, once with a dot in the key"
            raise BadInput(f"{name}:{lines.get(path, 1)}: {said}")
        found.add(path)
    return ReadDocument(cast(Json, value), {path: f"{name}:{line}" for path, line in lines.items()})


def _json(name: str, data: bytes) -> Json:
    check_size(name, data)
    try:
        text = with_quotes(data.decode("utf-8-sig"))
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        lines = _json_lines(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{name}:{error.lineno}: is not JSON: {_json_fault(error)}") from None
    except yaml_positions.Fault as fault:
        raise BadInput(f"{name}:{fault.line}: {fault.words}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{name}:{line}: is not JSON: it is no UTF-8 text") from None
    except RecursionError:
        raise BadInput(f"{name}:1: holds more than {yaml_positions.DEPTH_MAX} levels") from None
    return _mapping(name, value, lines)


def _json_fault(error: json.JSONDecodeError) -> str:
    rest = error.doc[error.pos :]
    if rest.startswith(("//", "/*")):
        return "has a comment; leave it out"
    end = re.match(r"[\s,]*([}\]])", rest)
    if end and error.doc[: error.pos + end.start(1)].rstrip().endswith(","):
        return f"has a comma before the {end[1]}; leave it out"
    return error.msg


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|[^\s{}\[\],:"]+')


@dataclass
class _Open:
    """Mapping or list in JSON text that has not ended yet."""

    path: str
    items: int | None
    """Index of a list's next item; None for a mapping."""
    keys: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def at(self) -> str:
        return f"{self.path}[{self.items}]"


def _json_lines(text: str) -> dict[str, int]:
    """Return the line of each path of JSON text. Raise Fault if a key is set twice or a document exceeds a limit."""
    lines: dict[str, int] = {}
    within: list[_Open] = []
    at, before, line, values = "", 0, 1, 0
    is_key = False
    for token in _TOKEN.finditer(text):
        line += text.count("\n", before, token.start())
        before, word = token.start(), token[0]
        if word in ("}", "]"):
            within.pop()
            is_key = False
        elif word == ",":
            is_key = within[-1].items is None
            if (items := within[-1].items) is not None:
                within[-1].items = items + 1
                at = within[-1].at
        elif is_key:
            key, inside = _text(word, line), within[-1]
            at = f"{inside.path}.{key}" if inside.path else key
            if key in inside.keys:
                said = f"{messages.printable_name(at)}: is set twice, here and in line {inside.keys[key]}"
                raise yaml_positions.Fault(line, said)
            inside.keys[key] = lines[at] = line
            is_key = False
        else:
            values += 1
            lines.setdefault(at, line)
            if word in ("{", "["):
                is_key = word == "{"
                within.append(_Open(at, None if is_key else 0))
                at = at if is_key else within[-1].at
            else:
                _text(word, line)
        for what, count, limit in (
            ("levels", len(within), yaml_positions.DEPTH_MAX),
            ("values", values, yaml_positions.VALUES_MAX),
        ):
            if count > limit:
                raise yaml_positions.Fault(line, f"holds more than {limit} {what}")
    return lines


def _text(word: str, line: int) -> str:
    """Raise Fault if no file could hold the text that a word of JSON stands for."""
    if "\\u" not in word:
        return word[1:-1] if "\\" not in word else str(json.loads(word))
    text = str(json.loads(word))
    if re.search("[\ud800-\udfff]", text):
        raise yaml_positions.Fault(line, "holds half of a character (\\ud800 to \\udfff)")
    return text


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each field's path (`a.b[0].c`) and value. A list of scalars is one field, and so is an empty mapping."""
    if isinstance(value, dict) and value:
        for key, inner in cast(Json, value).items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in cast(list[Any], value)):
        for index, inner in enumerate(cast(list[Any], value)):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


_ROLES = {"masterType": "masterConfig", "workerType": "workerConfig", "parameterServerType": "parameterServerConfig",
          "evaluatorType": "evaluatorConfig"}  # fmt: skip
_ACCELERATOR_KEYS = ("count", "type")
_CONFIG_KEYS = ("acceleratorConfig", "imageUri", "diskConfig", "containerCommand", "containerArgs", "tpuTfVersion")
_KEY = re.compile(r"^(\s*)(?:- )?([A-Za-z_][\w-]*)\s*:\s*(.*)$")


def _diagnosis(data: bytes, fault: yaml_positions.Fault) -> tuple[int, str]:
    """Return the line of a fault, and a message about what is probably missing there."""
    lines = data.decode("utf-8-sig", errors="replace").splitlines()
    tab = next((number for number, line in enumerate(lines, 1) if re.match(r" *\t", line) and line.strip()), None)
    if tab and tab <= fault.line:
        return tab, "is not YAML: a tab; indent with spaces"
    if "quote" in fault.words and (opened := _opened(data)):
        return opened, "is not YAML: the quote that opens here is never closed"
    if "misplaced ':'" in fault.words and (lost := _lost(lines, fault.line)):
        return fault.line, f"is not YAML: mapping values are not allowed here; {lost}"
    return fault.line, fault.words


def _opened(data: bytes) -> int | None:
    try:
        for _ in cast(Any, yaml).parse(data, Loader=yaml.CSafeLoader):
            pass
    except yaml.MarkedYAMLError as error:
        return error.context_mark.line + 1 if error.context_mark else None
    return None


def _lost(lines: list[str], line: int) -> str | None:
    """Return a message about the key that is probably missing above a line that is indented below a finished value."""
    at = _KEY.match(lines[line - 1]) if line <= len(lines) else None
    above = next((found for text in reversed(lines[: line - 1]) if text.strip() and (found := _KEY.match(text))), None)
    if not at or not above or len(at[1]) <= len(above[1]):
        return None
    config = _ROLES.get(above[2])
    if config and at[2] in _ACCELERATOR_KEYS:
        return f"the lines `{config}:` and `acceleratorConfig:` are probably missing between {above[2]} and {at[2]}"
    if config and at[2] in _CONFIG_KEYS:
        return f"the line `{config}:` is probably missing between {above[2]} and {at[2]}"
    return (
        f"{at[2]} is indented below {above[2]}, which has a value: a line such as `<key>:` is missing, or indent less"
    )
