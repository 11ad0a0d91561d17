"""What the submission asks of a service."""

from typing import NamedTuple, Protocol

from accel.clouds.backoff import Lease


class ClaimedJob(NamedTuple):
    """A job of a key. The older comes first."""

    created_ms: int
    id: str
    spec: str


class Pace(Protocol):
    """Seconds. A claim's lease has to outlive a call, the quiet period and another call."""

    @property
    def lease_s(self) -> float:
        """How long a claim without a job is its owner's."""
        ...

    @property
    def quiet_s(self) -> float:
        """A job that is not listed for so long after it was sent was not made."""
        ...

    @property
    def poll_s(self) -> float:
        """Between two looks at another client's claim."""
        ...

    @property
    def call_s(self) -> float:
        """The longest that one call without retries can take."""
        ...


class Forgetting(NamedTuple):
    """Of a service that forgets ended jobs."""

    after_s: float
    """Past it, that none is listed proves nothing."""
    words: str
    """What is said then: `<name> <words>`."""


class Platform(Protocol):
    """A service without idempotency, for one request.

    Calls raise CloudRefused, NoCredentials, NotFound, BadInput, OverLimit, Throttled or Unreached where nothing was
    made, and CloudSilent where that is not known.
    """

    name: str
    """Of the job."""
    key: str
    spec: str
    """Hash of the request, so that one key is not taken for another job."""
    pace: Pace
    forgetting: Forgetting | None

    def turn(self) -> None:
        """Waits until the request may be sent."""
        ...

    def prepare(self, lease: Lease) -> None:
        """Makes what the job needs; it may be there already."""
        ...

    def send(self) -> str:
        """Sends the request, once; the job's id."""
        ...

    def listed(self) -> list[ClaimedJob]:
        """The jobs of the key that the service lists."""
        ...

    def stop(self, job_id: str, reason: str) -> None:
        """Ends a job in any state."""
        ...
