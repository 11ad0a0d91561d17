"""Arguments of the Python API. The command's parser refuses a wrong option before anything is done; so does this."""

import os
from math import isnan
from typing import cast

from accel.diagnostics.errors import BadInput
from accel.diagnostics.messages import display
from accel.whole_numbers import INT_MAX


def text(**given: object) -> None:
    """Raise BadInput for an argument that is neither text nor None."""
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise BadInput(f"{name}: must be text, is {describe_value(value)}")


def path(name: str, value: object) -> str:
    """Return the path as text. Raise BadInput for what is none."""
    found = cast(object, os.fspath(value) if isinstance(value, str | os.PathLike) else value)  # pyright: ignore
    if not isinstance(found, str) or "\0" in found:
        raise BadInput(f"{name}: must be a path, is {describe_value(found)}")
    return found


def whole_number(name: str, value: object, least: int | None = None, most: int = INT_MAX) -> None:
    """Raise BadInput for what is neither a whole number from `least` to `most` nor None."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{name}: must be a whole number, is {describe_value(value)}")
    if least is not None and value < least:
        raise BadInput(f"{name}: must be at least {least}, is {describe_value(value)}")
    if value > most:
        raise BadInput(f"{name}: must be at most {most}, is {describe_value(value)}")


def seconds(name: str, value: object) -> None:
    """Raise BadInput for what is neither a number nor None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or isnan(value)):
        raise BadInput(f"{name}: must be a number of seconds, is {describe_value(value)}")


def describe_value(value: object) -> str:
    if value is None or isinstance(value, str | int | float | dict | list):
        return display(value)  # pyright: ignore[reportUnknownArgumentType]
    return f"of type {type(value).__name__}"
