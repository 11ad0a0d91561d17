"""A job that waits or runs now on any cloud, and the places that it depends on."""

from dataclasses import dataclass
from datetime import datetime

from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.google_vms import GceTarget, TpuVmTarget

LIMIT = 1_000_000
"""Most jobs of one target; in effect all of them."""
WAITING = ("QUEUED",)
JOBSETS = "jobsets.jobset.x-k8s.io"
"""Name of the custom resource definition without which a cluster has no JobSets."""


@dataclass(frozen=True)
class Live:
    """A job that has not ended."""

    ref: str
    name: str
    phase: str
    target: str
    accelerators: int
    """Number that it holds now, of all its tasks and nodes; 0 while it waits."""
    hours: float | None
    """Accelerator-hours of its running tasks; None where that is not known."""
    places: frozenset[str]
    unit: str = "GPU"

    @property
    def waits(self) -> bool:
        return self.phase in WAITING


def ground(target: TpuVmTarget | GceTarget | GoogleBatchTarget | VertexTarget) -> frozenset[str]:
    """Return the places that every job of such a target depends on."""
    found = {f"bucket:{target.bucket}", f"account:{target.service_account}"}
    if isinstance(target, VertexTarget) and target.persistent_resource:
        found.add(f"persistent:{target.persistent_resource}")
    return frozenset(found)


def hours(count: int, since: datetime | None, now: datetime) -> float | None:
    """Return None where the time is not known, and 0 without accelerators."""
    if since is None:
        return None if count else 0.0
    return count * max(0.0, (now - since).total_seconds()) / 3600
