"""AWS clients: one for a call or two, and those of a region that a backend makes when it first needs them."""

import threading
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from ..rate_limit import Rate
from .errors import asking

SUBMITS_PER_S = 49
"""AWS takes 50 SubmitJob calls a second, of everybody in an account and region together.
Source: https://docs.aws.amazon.com/batch/latest/userguide/service_limits.html"""

CONNECTIONS = 64
"""Kept open by a client: as many as there are threads that submit."""
_MAKING = threading.Lock()
"""Clients may be shared by threads, and making one is not safe for them.
Source: https://docs.aws.amazon.com/boto3/latest/guide/clients.html"""

Client = Any
"""A boto3 client: its methods are made at run time and have no types."""


def client(service: str, region: str, *, connect_s: float, read_s: float, attempts: int) -> Client:
    """Return a client. Raise what botocore raises."""
    from botocore.config import Config

    retries: Any = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(connect_timeout=connect_s, read_timeout=read_s, retries=retries, max_pool_connections=CONNECTIONS)
    with _MAKING:
        return import_module("boto3").client(service, region_name=region, config=config)


@dataclass(frozen=True)
class Timing:
    """Seconds. A claim's lease has to outlive a call (connect + read), the quiet period and another call."""

    connect_s: float = 5
    read_s: float = 20
    lease_s: float = 90
    quiet_s: float = 15
    """ListJobs may lag behind SubmitJob; AWS gives no figure. A job not listed for this long was not made."""
    poll_s: float = 2
    """Between two looks at a log or at another client's claim."""
    settle_s: float = 5
    """Lines may arrive after the state: a log is whole once nothing came for so long after the job's end."""
    silence_s: float = 300
    """A followed log outlives an API that cannot be reached for this long."""
    submits_per_s: int = SUBMITS_PER_S
    """The most SubmitJob calls that this process makes in a second."""

    @property
    def call_s(self) -> float:
        """The longest that one call without retries can take."""
        return self.connect_s + self.read_s


class Clients:
    """The clients of one region. They are made once; boto3 clients may be shared by threads."""

    def __init__(self, region: str, timing: Timing) -> None:
        self.region = region
        self.timing = timing
        self._readers: dict[str, Client] = {}
        self.submits = Rate(timing.submits_per_s)
        self.registering: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        """A job definition's: of several threads one registers it, and different ones do not wait for each other."""
        self.registered: dict[str, float] = {}
        """When which definition was last known to be there, by now() of patience."""
        self.looked: dict[str, float] = {}
        """When which claim table last had no stop, by now() of patience."""

    @cached_property
    def batch(self) -> Client:
        """For calls that may be made twice."""
        return self._client("batch", attempts=4)

    @cached_property
    def batch_once(self) -> Client:
        """For calls that make something: by default boto3 sends SubmitJob again after the server took it, and
        SubmitJob has no token by which the server would know (https://github.com/aws/containers-roadmap/issues/2798).
        """
        return self._client("batch", attempts=1)

    @cached_property
    def dynamodb(self) -> Client:
        return self._client("dynamodb", attempts=4)

    @cached_property
    def logs(self) -> Client:
        return self._client("logs", attempts=4)

    def reader(self, service: str) -> Client:
        """For calls that only look, of any other service."""
        if service not in self._readers:
            self._readers[service] = self._client(service, attempts=3)
        return self._readers[service]

    def _client(self, service: str, attempts: int) -> Client:
        timing = self.timing
        with asking(f"{service} in {self.region}"):
            return client(service, self.region, connect_s=timing.connect_s, read_s=timing.read_s, attempts=attempts)
