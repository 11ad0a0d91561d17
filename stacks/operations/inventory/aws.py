"""One region of AWS, as the commands that look around there ask it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking


@dataclass(frozen=True)
class AwsRegion:
    """Its APIs. Raises as accel.clouds.aws.errors.asking does."""

    name: str

    @cached_property
    def batch(self) -> Any:
        return self._client("batch")

    @cached_property
    def ec2(self) -> Any:
        return self._client("ec2")

    def pages(self, api: Any, operation: str, key: str, **given: Any) -> list[dict[str, Any]]:
        """Everything that an operation lists under a key."""
        with asking(f"{operation} in {self.name}"):
            if not api.can_paginate(operation):
                return getattr(api, operation)(**given)[key]
            return [each for page in api.get_paginator(operation).paginate(**given) for each in page[key]]

    def _client(self, service: str) -> Any:
        with asking(f"{service} in {self.name}"):
            return client(service, self.name, connect_s=5, read_s=20, attempts=6)
