"""Number of free GPUs of a target, for each pool or queue that reports it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Free:
    """Free GPUs (TPU chips of a TPU pool) of one pool, environment or queue that can grow to `total`. `idle` of them
    are on running machines (None: unknown), the others on machines that may still start if the cloud has capacity."""

    place: str
    free: int
    total: int
    idle: int | None = None

    def __str__(self) -> str:
        idle = f" ({self.idle} idle)" if self.idle else ""
        return f"{self.place}: {self.free} of {self.total}{idle}"


@runtime_checkable
class FreeGpus(Protocol):
    """Backend that can tell how many GPUs of its target are free."""

    def free(self) -> Sequence[Free]:
        """Read each place that has GPUs, and change nothing. Raise CloudRefused, CloudSilent and NoCredentials."""
        ...
