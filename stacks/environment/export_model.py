"""Outputs that a stack promises, built from values that are known once everything exists."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import pulumi


def promise_output(
    wired: pulumi.Output[Any], make: Callable[[Any], Any], *, optional: tuple[str, ...] = ()
) -> pulumi.Output[Any]:
    """Apply `make` to the values; return None while one of them is missing, except for those that may be None.

    Values are missing in a destroy that runs the program of an incompletely created stack: the engine passes None for
    what the state lacks. Such a stack promises nothing, and that must not keep it from being destroyed.
    """
    return wired.apply(lambda known: make(known) if whole(known, optional) else None)


def whole(value: Any, optional: tuple[str, ...] = ()) -> bool:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return all(whole(each, optional) for key, each in items if key not in optional)
    if isinstance(value, list | tuple):
        return all(whole(each, optional) for each in cast("list[Any]", value))
    return value is not None
