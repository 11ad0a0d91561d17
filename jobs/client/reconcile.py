"""Reconciliation of jobs that only their clients advance: jobs on VMs of their own, or on Spot with a deadline."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from accel.console.errors import say, warn
from accel.console.options import Settings
from accel.contract.google_vms import VmGround
from accel.diagnostics.errors import BadInput, CloudSilent, JobsError, NotFound, NotPromised

from ..backends.base import Backend, JobRef, Listing, Phase, Status, TendedBackend
from ..backends.features import FEATURES
from ..backends.listing import list_statuses
from ..backends.registry import of_target
from ..model.sweep_tasks import MOVED_MAX
from . import resolve
from .allowances.submitter import settle_ended_jobs
from .spot_fallback import Followers
from .targets import known_targets

LIMIT = MOVED_MAX
"""Most jobs in one round."""
MOVED_KINDS = tuple(kind for kind, features in FEATURES.items() if features.spot_prefer)
RECENT = timedelta(hours=1)
"""Time after a job's end in which a round over a target still moves it to on demand; later, the job must be named."""


def round_of(settings: Settings, jobs: Sequence[str], to: str | None, followers: Followers) -> list[Status]:
    """Advance each job that can be seen once. Raises BadInput for kinds that their own service looks after."""
    statuses: list[Status] = []
    for ref, backend in _of_target(settings, to) if to else [resolve.job(text, settings) for text in jobs]:
        try:
            status = backend.tend(ref, say) if isinstance(backend, TendedBackend) else followers.look(ref, backend)
            if status is None and not to:
                said = f"{ref}: jobs of kind {ref.kind} without a deadline are looked after by their own service"
                raise BadInput(said)
            statuses += [status] if status else []
        except JobsError as error:
            # An error of one job must not keep the target's other jobs from moving in time.
            others = to is not None and (not isinstance(backend, TendedBackend) or isinstance(error, NotPromised))
            if not (others or isinstance(error, CloudSilent | NotFound)):
                raise
            warn(f"{ref}: {error.message}", settings)
    settle_ended_jobs(statuses)
    return statuses


def _of_target(settings: Settings, name: str) -> Iterator[tuple[JobRef, Backend]]:
    _, found = known_targets(settings).choose(name)
    backend = of_target(name, found)
    followed = not isinstance(backend, TendedBackend)
    if not isinstance(backend, Listing) or (followed and found.kind not in MOVED_KINDS):
        raise BadInput(f"target {name}: its jobs are looked after by their own service")
    if isinstance(found, VmGround):
        from .declared_tpus import queues_of  # other targets need not load it

        for failure in queues_of(found.bucket).reconcile(say)[1]:
            warn(failure, settings)
    since = datetime.now(UTC) - RECENT
    for status in list_statuses(backend, lambda text: warn(text, settings), limit=LIMIT, ended=followed):
        # A job that failed a moment ago may have a client that died before it submitted the next one.
        if not status.phase.ended or (status.phase is Phase.FAILED and status.stopped and status.stopped > since):
            yield status.ref, backend
