"""Faults that a model finds in its values, in plain lines: `accelerator.count: must be an integer, is 1.5`."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from accel.diagnostics import messages

Path = tuple[str | int, ...]


def locate_faults(
    model: type[BaseModel], error: ValidationError, unread: Collection[Path] = ()
) -> Iterator[tuple[Path, str]]:
    """Skip `unread` places, whose faults are already reported."""
    for fault in error.errors(include_url=False):
        path = tuple(part for part in fault["loc"] if part != "[key]")
        limits: Mapping[str, Any] = fault.get("ctx", {})
        if path in unread:  # what stands there now is a stand-in
            continue
        if not path and fault["type"] == "value_error":
            yield from ((path_of(line.partition(":")[0]), line) for line in str(limits["error"]).splitlines())
            continue
        if fault["type"] == "extra_forbidden":
            known = _fields(model, path[:-1])
            meant = _gpus(fault["input"]) if is_gpus(str(path[-1]), known) else None
            said = f"unknown field{meant or did_you_mean(str(path[-1]), known)}"
        else:
            value = None if fault["loc"][-1:] == ("[key]",) else fault["input"]
            said = messages.describe_fault(fault["type"], limits, path, value)
            if path == (_ACCELERATOR,) and fault["type"].startswith("model"):
                said += _gpus(value) or ""
        yield path, f"{place_name(path)}: {said}"


_ACCELERATOR = "accelerator"
_GPUS = ("gpu", "gpus", "num_gpus", "gpu_count", "gpu_type", "accelerators")
_KIND = re.compile(r"(?=\D)([A-Za-z][A-Za-z0-9-]{0,40})(?::(\d{1,4}))?", re.ASCII)


def is_gpus(name: str, known: Sequence[str]) -> bool:
    """Return whether an unknown field is another tool's name for our GPU field."""
    return name.lower() in _GPUS and _ACCELERATOR in known


def did_you_mean(name: str, known: Sequence[str]) -> str:
    return f"; did you mean {_ACCELERATOR}?" if is_gpus(name, known) else messages.did_you_mean(name, known)


def _gpus(value: Any) -> str | None:
    """Return `; write accelerator: {count: 1}` for a number or a kind of GPU as other tools write them."""
    if re.fullmatch(r"\d{1,4}", str(value), re.ASCII):
        return f"; write {_ACCELERATOR}: {{count: {value}}}"
    found = _KIND.fullmatch(value) if isinstance(value, str) and messages.display(value) != "text" else None
    count = f", count: {found[2]}" if found and found[2] else ""
    return f"; write {_ACCELERATOR}: {{type: {found[1]}{count}}}" if found else None


def path_of(text: str) -> Path:
    """Parse `mounts.0.path` or `mounts[0].path`."""
    return tuple(int(part) if part.isdecimal() else part for part in text.replace("[", ".").replace("]", "").split("."))


def place_name(path: Path) -> str:
    return messages.printable_name(".".join(str(part) for part in path))


def inside(annotation: Any) -> Any:
    """Return the model within an annotation, dict and list for those, or None for a plain value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    origin: Any = get_origin(annotation)
    if origin is dict:
        return dict
    parts = [found for one in get_args(annotation) if (found := inside(one)) is not None]
    return parts[0] if parts else (list if origin is list else None)


def _fields(model: Any, path: Path) -> Sequence[str]:
    for part in path:
        if isinstance(model, type) and issubclass(model, BaseModel) and part in model.model_fields:
            model = inside(model.model_fields[str(part)].annotation)
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []
