"""The interface of a service, as submission needs it."""

from typing import NamedTuple, Protocol

from accel.clouds.backoff import Lease


class ClaimedJob(NamedTuple):
    """Job of a key. The older sorts first."""

    created_ms: int
    id: str
    spec: str


class Pace(Protocol):
    """Times in seconds. A claim's lease must outlive a call, the quiet period and another call."""

    @property
    def lease_s(self) -> float:
        """How long a claim without a job belongs to its owner."""
        ...

    @property
    def quiet_s(self) -> float:
        """Time after which a request whose job is still not listed created no job."""
        ...

    @property
    def poll_s(self) -> float:
        """Interval between two reads of another client's claim."""
        ...

    @property
    def call_s(self) -> float:
        """Longest duration of one call without retries."""
        ...


class Forgetting(NamedTuple):
    """Time after which a service forgets ended jobs."""

    after_s: float
    """Age after which an empty listing proves nothing."""
    words: str
    """Message for that case: `<name> <words>`."""


class Platform(Protocol):
    """Service without idempotency, for one request. Calls raise CloudRefused, NoCredentials, NotFound, BadInput,
    OverLimit, Throttled or Unreached if nothing was created, and CloudSilent if that is unknown."""

    name: str
    key: str
    spec: str
    """Hash of the request, so that one key is not taken for another job."""
    pace: Pace
    forgetting: Forgetting | None

    def turn(self) -> None:
        """Wait until the request may be sent."""
        ...

    def prepare(self, lease: Lease) -> None:
        """Create what the job needs, unless it exists."""
        ...

    def send(self) -> str:
        """Send the request once, and return the job's id."""
        ...

    def listed(self) -> list[ClaimedJob]: ...

    def stop(self, job_id: str, reason: str) -> None:
        """Stop a job in any state."""
        ...
