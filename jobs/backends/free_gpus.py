"""How many GPUs of a target are free now, for each pool or queue that can tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Free:
    """Free GPUs (TPU chips of a TPU pool) of one pool, environment or queue, of `total` that it may come to.

    `idle` of them are on machines that run; the others are on machines that may still be started, if the cloud has
    capacity. None: the platform does not say.
    """

    place: str
    free: int
    total: int
    idle: int | None = None

    def __str__(self) -> str:
        idle = f" ({self.idle} idle)" if self.idle else ""
        return f"{self.place}: {self.free} of {self.total}{idle}"


@runtime_checkable
class FreeGpus(Protocol):
    """A backend that can tell how many GPUs of its target are free."""

    def free(self) -> Sequence[Free]:
        """Reads only. Places without GPUs are left out. Raises CloudRefused, CloudSilent and NoCredentials."""
        ...
