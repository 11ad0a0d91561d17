"""Listing of a backend's jobs that tolerates damaged records."""

from collections.abc import Callable, Iterator

from accel.diagnostics.errors import Damaged

from .base import Listing, Status


def list_statuses(
    backend: Listing,
    warn: Callable[[str], None],
    *,
    limit: int,
    ended: bool,
    progress: Callable[[int], None] = lambda count: None,
) -> Iterator[Status]:
    """Report each unreadable record to `warn`. Raise whatever else the backend raises."""
    try:
        yield from backend.list(limit=limit, ended=ended, progress=progress)
    except Damaged as damaged:
        for message in damaged.messages:
            warn(message)


def once(tell: Callable[[str], None]) -> Callable[[str], None]:
    """Drop repeated messages."""
    told: set[str] = set()

    def first(message: str) -> None:
        if message not in told:
            tell(message)
        told.add(message)

    return first
