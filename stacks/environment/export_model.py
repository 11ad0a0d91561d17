"""What a stack promises, built from values that are known once everything exists."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import pulumi


def promise_output(
    wired: pulumi.Output[Any], make: Callable[[Any], Any], *, optional: tuple[str, ...] = ()
) -> pulumi.Output[Any]:
    """What `make` gives of the values; None while one of them is missing, but for those that may be None.

    They are missing in a destroy that runs the program of a stack of which not everything was made: the engine gives
    None for what the state has not. Of such a stack nothing is promised, and a promise that cannot be built must not
    keep it from being destroyed.
    """
    return wired.apply(lambda known: make(known) if whole(known, optional) else None)


def whole(value: Any, optional: tuple[str, ...] = ()) -> bool:
    """Whether nothing in the value is None, but under the keys that may be."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return all(whole(each, optional) for key, each in items if key not in optional)
    if isinstance(value, list | tuple):
        return all(whole(each, optional) for each in cast("list[Any]", value))
    return value is not None
