"""Faults of a document in plain words, one line each. pydantic detects them; this module gives each the path that its
author wrote (without the tags of unions), and a message with the value and what is allowed, or the nearest known
name."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from accel.catalog.nearest import nearest
from accel.diagnostics import messages

Path = tuple[str | int, ...]
ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True)
class Fault:
    """One fault and its place."""

    path: Path
    message: str
    meant: str | None = None
    """Known key nearest to an unknown one."""

    def __str__(self) -> str:
        return f"{format_path(self.path)}: {self.message}" if self.path else self.message


def format_path(path: Path) -> str:
    """Format ("aws", "subnet_ids", 1) as aws.subnet_ids[1]."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def several(faults: Sequence[tuple[str, str]]) -> PydanticCustomError:
    """Return a validator's error for several faults, each a (path relative to the model, message)."""
    text = "; ".join(f"{path}: {message}" for path, message in faults)
    return PydanticCustomError("several", "{text}", {"faults": list(faults), "text": text})


def find(model: type[BaseModel], document: Any) -> list[Fault]:
    """Return all faults: unknown keys do not hide those of their neighbours."""
    return parse(model, document)[1]


def parse(model: type[ModelT], document: Any) -> tuple[ModelT | None, list[Fault]]:
    found: list[Fault] = []
    while True:
        try:
            parsed = model.model_validate(document)
        except ValidationError as error:
            details = error.errors(include_url=False)
            found += [fault for detail in details for fault in explain(model, detail) if fault not in found]
            unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
            if not unknown:
                return None, _without_echoes(found)
            for where in unknown:
                document = replace_value(document, _walk(model, where)[0], None)
        else:
            return None if found else parsed, _without_echoes(found)


def _without_echoes(faults: list[Fault]) -> list[Fault]:
    """Drop "is missing" for a key that is present but misspelt."""
    meant = {(*fault.path[:-1], fault.meant) for fault in faults if fault.meant}
    return [fault for fault in faults if fault.message != messages.MISSING or fault.path not in meant]


def explain(model: type[BaseModel], detail: ErrorDetails) -> list[Fault]:
    """Return several faults for a validator that reports more than one."""
    path, around = _walk(model, detail["loc"])
    context: Mapping[str, Any] = detail.get("ctx", {})
    if detail["type"] == "several":
        return [Fault((*path, *parse_path(field)), message) for field, message in context["faults"]]
    if detail["type"] == "extra_forbidden":
        return [_unknown(path, list(around.model_fields) if _is_model(around) else [])]
    if detail["type"].startswith("union_tag_"):
        return [_untagged(path, str(context["discriminator"]).strip("'"), detail["input"], context)]
    return [Fault(path, messages.describe_fault(detail["type"], context, path, detail["input"]))]


def _untagged(path: Path, tag: str, given: Any, context: Mapping[str, Any]) -> Fault:
    if "expected_tags" in context:
        return Fault((*path, tag), messages.describe_fault("union_tag_invalid", context, path, given[tag]))
    keys: list[Any] = list(given) if isinstance(given, dict) else []  # pyright: ignore[reportUnknownArgumentType]
    near = nearest(tag, [key for key in keys if isinstance(key, str)], 1)
    return _unknown((*path, near[0]), [tag]) if near else Fault((*path, tag), messages.MISSING)


def _unknown(path: Path, known: Sequence[str]) -> Fault:
    near = nearest(str(path[-1]), known, 1)
    return Fault(path, f"unknown key{messages.did_you_mean(str(path[-1]), known)}", near[0] if near else None)


def _walk(model: Any, location: Sequence[str | int]) -> tuple[Path, Any]:
    """Return the author's path to a place, and the type that contains it."""
    path: list[str | int] = []
    around: Any = None
    here: Any = model
    for part in location:
        here, discriminator = _bare(here)
        members = get_args(here) if get_origin(here) in (Union, types.UnionType) else ()
        if members:
            # pydantic adds the tag, or the name of the tried member, to the location; the author did not write it.
            tagged = [m for m in members if discriminator and _tag(m, discriminator) == part]
            here = tagged[0] if tagged else next((m for m in members if _is_model(m)), None)
            if tagged or not _is_model(here) or part not in here.model_fields:
                continue
        around, here = here, _inside(here, part)
        if part != "[key]":
            path.append(part)
    return tuple(path), around


def _bare(hint: Any) -> tuple[Any, str | None]:
    """Return a type without Annotated and None, and the discriminator declared on it."""
    discriminator: str | None = None
    while True:
        if get_origin(hint) is Annotated:
            inner, *extras = get_args(hint)
            declared = [e.discriminator for e in extras if isinstance(e, FieldInfo) and e.discriminator]
            discriminator = str(declared[0]) if declared else discriminator
            hint = inner
        elif isinstance(hint, FieldInfo):
            discriminator = str(hint.discriminator) if hint.discriminator else discriminator
            hint = hint.annotation
        elif get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint):
            rest = [member for member in get_args(hint) if member is not type(None)]
            if len(rest) > 1:
                return Union[tuple(rest)], discriminator  # noqa: UP007 - built at run time
            hint = rest[0]
        else:
            return hint, discriminator


def _inside(hint: Any, part: str | int) -> Any:
    if _is_model(hint):
        return hint.model_fields.get(part)
    arguments = get_args(hint)
    if get_origin(hint) is dict:
        return arguments[1]
    return arguments[0] if arguments else None


def _is_model(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, BaseModel)


def _tag(member: Any, discriminator: str) -> Any:
    hint = member.model_fields[discriminator].annotation if _is_model(member) else None
    return get_args(hint)[0] if get_origin(hint) is Literal else None


def parse_path(field: str) -> Path:
    """Parse instance_types[2] into ("instance_types", 2)."""
    parts: list[str | int] = []
    for piece in field.replace("]", "").replace("[", ".").split("."):
        if piece:
            parts.append(int(piece) if piece.isdigit() else piece)
    return tuple(parts)


def replace_value(document: Any, path: Path, value: Any) -> Any:
    """Return a copy; None removes the entry."""
    if isinstance(document, list):
        entries: list[Any] = list(document)  # pyright: ignore[reportUnknownArgumentType]
        return [
            replace_value(entry, path[1:], value) if index == path[0] else entry for index, entry in enumerate(entries)
        ]
    rest = {key: entry for key, entry in document.items() if key != path[0]}
    if len(path) == 1:
        return rest if value is None else {**rest, path[0]: value}
    return {**rest, path[0]: replace_value(document[path[0]], path[1:], value)}
