"""YAML or JSON that was written for another tool, with each number as it was spelt; what is wrong has its line."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import yaml

from accel.diagnostics import messages, no_break_spaces, yaml_positions
from accel.diagnostics.errors import BadInput

from .shell import is_command

Json = dict[str, Any]


class _Everything(frozenset[str]):
    """Numbers below any key stay text: `2.10` is a version, and `1e3` an argument."""

    def __contains__(self, key: object) -> bool:
        return True


def read(name: str, data: bytes) -> Json:
    """The document as plain values. Raises BadInput with file and line."""
    text = data.decode("utf-8-sig", errors="replace").lstrip()
    if text.startswith(("{", "[")):
        return _json(name, data)
    try:
        tree = yaml_positions.read(data, _Everything())
    except yaml_positions.Fault as fault:
        line, said = _diagnosis(data, fault)
        raise BadInput(f"{name}:{line}: {said}") from None
    if tree.faults:
        raise BadInput(f"{name}:{tree.faults[0].line}: {tree.faults[0].words}")
    return _mapping(name, tree.value)


def read_as_spaces(name: str, data: bytes, say: Callable[[str], None]) -> bytes:
    """A file in any of the forms that are imported, with spaces for no-break spaces, which is said."""
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


def _mapping(name: str, value: Any) -> Json:
    if not isinstance(value, dict):
        raise BadInput(f"{name}: must be a mapping of fields, is {messages.display(value)}")
    return cast(Json, value)


def _json(name: str, data: bytes) -> Json:
    if len(data) > yaml_positions.BYTES_MAX:
        raise BadInput(f"{name}:1: is larger than {yaml_positions.BYTES_MAX // 2**20} MiB")
    try:
        value = json.loads(data, parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise BadInput(f"{name}:{error.lineno}: is not JSON: {error.msg}") from None
    except _Twice as error:
        raise BadInput(f"{name}: {messages.name_shown(str(error))}: is set twice") from None
    except (UnicodeDecodeError, RecursionError):
        raise BadInput(f"{name}: is not JSON: it is no UTF-8 text, or has too many levels") from None
    return _mapping(name, value)


class _Twice(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> Json:
    found: Json = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(key)
        found[key] = value
    return found


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field below a value: its path (`a.b[0].c`) and what it holds. A list of scalars is one field; so is an
    empty mapping."""
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
    """The line of a fault, and what is probably missing there."""
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
    """The line of the quote that is not closed."""
    try:
        for _ in cast(Any, yaml).parse(data, Loader=yaml.CSafeLoader):
            pass
    except yaml.MarkedYAMLError as error:
        return error.context_mark.line + 1 if error.context_mark else None
    return None


def _lost(lines: list[str], line: int) -> str | None:
    """What a line that is indented below a finished value was probably under."""
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
