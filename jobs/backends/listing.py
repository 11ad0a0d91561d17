"""The jobs that a backend lists, whatever of its records is damaged."""

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
    """Newest first; each record that cannot be read is told to `warn`. Raises what else the backend raises."""
    try:
        yield from backend.list(limit=limit, ended=ended, progress=progress)
    except Damaged as damaged:
        for message in damaged.messages:
            warn(message)


def once(tell: Callable[[str], None]) -> Callable[[str], None]:
    """The same, but no message twice."""
    told: set[str] = set()

    def first(message: str) -> None:
        if message not in told:
            tell(message)
        told.add(message)

    return first
