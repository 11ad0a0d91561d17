"""Jobs that nobody but their clients moves on."""

from collections.abc import Iterator, Sequence

from ..backend import Backend, JobRef, Listing, Status, Tended
from ..errors import BadInput, CloudSilent, NotFound
from ..registry import of_target
from . import finding
from .report import say, warn
from .settings import Settings
from .spending import settle_ended

LIMIT = 1000
"""Jobs of a target that are tended in one round."""


def round_of(settings: Settings, jobs: Sequence[str], to: str | None) -> list[Status]:
    """Each of the jobs, or of the target's, moved on once; one that cannot be seen just now is left for the next round.

    Raises BadInput for a job of a kind that needs nobody.
    """
    statuses: list[Status] = []
    for ref, backend in _of_target(settings, to) if to else [finding.job(text) for text in jobs]:
        if not isinstance(backend, Tended):
            raise BadInput(f"{ref}: jobs of kind {ref.kind} are looked after by their own service")
        try:
            statuses.append(backend.tend(ref, say))
        except (CloudSilent, NotFound) as error:
            warn(f"{ref}: {error.message}", settings)
    settle_ended(statuses)
    return statuses


def _of_target(settings: Settings, name: str) -> Iterator[tuple[JobRef, Backend]]:
    backend = of_target(*finding.targets(settings).choose(name))
    if not isinstance(backend, Tended) or not isinstance(backend, Listing):
        raise BadInput(f"target {name}: its jobs are looked after by their own service")
    for status in list(backend.list(limit=LIMIT, ended=False)):
        yield status.ref, backend
