"""What a backend can tell that it cannot run, asked of all requests before the first is sent."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from accel.diagnostics.errors import BadInput, BadInputs, JobsError

from ..backends.base import Request

if TYPE_CHECKING:
    from ..model.job import Job
    from .bulk import Item


@runtime_checkable
class Feasible(Protocol):
    """A backend that can tell without making anything that it cannot run a request."""

    def check(self, request: Request) -> None:
        """Reads only. Raises what submit raises for a job that does not exist yet."""
        ...


def check(pairs: "Sequence[tuple[Job, Item]]") -> None:
    """Raise BadInputs with every fault, or another error of the first job that has one; of several, with its name."""
    faults: list[str] = []
    for job, (backend, request) in pairs:
        if not isinstance(backend, Feasible):
            continue
        prefix = f"{job.name}: " if len(pairs) > 1 else ""
        try:
            backend.check(request)
        except BadInput as error:
            messages = error.messages if isinstance(error, BadInputs) else [error.message]
            faults += [prefix + message for message in messages]
        except JobsError as error:
            raise type(error)(prefix + error.message, error.hint) from None
    if faults:
        raise BadInputs(faults)
