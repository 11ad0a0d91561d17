"""AWS clients: single ones for a call or two, and those of a region that a backend creates on first use."""

import threading
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from ...diagnostics.errors import BadInput
from ..rate_limit import Rate
from .errors import SETTINGS, asking
from .responses import require_aws

SUBMITS_PER_S = 49
"""AWS accepts 50 SubmitJob calls per second for an account and region in total. Source:
https://docs.aws.amazon.com/batch/latest/userguide/service_limits.html"""

CONNECTIONS = 64
"""As many as there are submitting threads."""
_MAKING = threading.Lock()
"""Threads may share clients, but creating one is not thread-safe. Source:
https://docs.aws.amazon.com/boto3/latest/guide/clients.html"""

Client = Any
"""A boto3 client, whose methods are created at run time and have no types."""


def client(service: str, region: str, *, connect_s: float, read_s: float, attempts: int) -> Client:
    """Return a client that refuses responses of other servers. Raise botocore's errors, and BadInput for a setting that
    boto3 cannot use."""
    from botocore.config import Config

    retries: Any = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(connect_timeout=connect_s, read_timeout=read_s, retries=retries, max_pool_connections=CONNECTIONS)
    with _MAKING:
        try:
            created = import_module("boto3").client(service, region_name=region, config=config)
        except ValueError as error:
            # An endpoint that is no address, or a credential_process that prints something else.
            raise BadInput(f"{service} in {region}: a setting that boto3 cannot use: {error}", SETTINGS) from error
    created.meta.events.register("before-parse", require_aws)
    return created


@dataclass(frozen=True)
class Timing:
    """Timeouts and intervals in seconds. A claim's lease has to outlive a call (connect + read), the quiet period and
    another call."""

    connect_s: float = 5
    read_s: float = 20
    lease_s: float = 90
    quiet_s: float = 15
    """Time after which a job that is not listed was not created. ListJobs may lag behind SubmitJob; AWS gives no
    figure."""
    poll_s: float = 2
    """Interval between two looks at a log or at another client's claim."""
    settle_s: float = 5
    """Silence after a job's end that completes its log, since lines may arrive after the state."""
    silence_s: float = 300
    """Longest outage of the API that a followed log survives."""
    submits_per_s: int = SUBMITS_PER_S
    """Limit of this process."""

    @property
    def call_s(self) -> float:
        return self.connect_s + self.read_s


class Clients:
    """The clients of one region, each created once. Threads may share boto3 clients."""

    def __init__(self, region: str, timing: Timing) -> None:
        self.region = region
        self.timing = timing
        self._readers: dict[str, Client] = {}
        self.submits = Rate(timing.submits_per_s)
        self.registering: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        """Lock for each job definition: one thread registers it, and others do not wait for each other."""
        self.registered: dict[str, float] = {}
        """When each definition was last known to exist, by backoff.now()."""
        self.looked: dict[str, float] = {}
        """When each claim table last had no stop, by backoff.now()."""

    @cached_property
    def batch(self) -> Client:
        """Client for idempotent calls."""
        return self._client("batch", attempts=4)

    @cached_property
    def batch_once(self) -> Client:
        """Client for calls that create something. By default boto3 resends SubmitJob after the server accepted it, and
        SubmitJob has no idempotency token (https://github.com/aws/containers-roadmap/issues/2798)."""
        return self._client("batch", attempts=1)

    @cached_property
    def dynamodb(self) -> Client:
        return self._client("dynamodb", attempts=4)

    @cached_property
    def logs(self) -> Client:
        return self._client("logs", attempts=4)

    def reader(self, service: str) -> Client:
        """Return the client for read-only calls."""
        if service not in self._readers:
            self._readers[service] = self._client(service, attempts=3)
        return self._readers[service]

    def _client(self, service: str, attempts: int) -> Client:
        timing = self.timing
        with asking(f"{service} in {self.region}"):
            return client(service, self.region, connect_s=timing.connect_s, read_s=timing.read_s, attempts=attempts)
