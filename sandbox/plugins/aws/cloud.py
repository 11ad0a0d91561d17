"""AWS API of the sandbox, as one resource sees it: a service and a region."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from accel.catalog.aws_partitions import partition_of

from ... import keys
from ..mapping import member, to_api

_GONE = (
    "NotFound",
    "InvalidPlacementGroup.Unknown",
    "NoSuch",
    "NonExist",
    "DoesNotExist",
    "not exist",
    "not found",
    "404 Not Found",
)
_CONFIG = Config(
    retries={"mode": "standard", "max_attempts": 10}, max_pool_connections=32, s3={"addressing_style": "path"}
)


@dataclass
class Account:
    """Clients of one account at one endpoint, cached: creating one costs 50 ms."""

    url: str
    key: str
    """Key of the sandbox."""
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def client(self, service: str, region: str) -> Any:
        with self._lock:  # boto3's default session creates clients in one thread only
            if (service, region) not in self._clients:
                given = keys.boto(self.key, keys.DEPLOYER)
                made: Any = boto3.client
                self._clients[service, region] = made(
                    service, region_name=region, endpoint_url=self.url, config=_CONFIG, **given
                )
            return self._clients[service, region]

    @cached_property
    def number(self) -> str:
        return self.client("sts", "us-east-1").get_caller_identity()["Account"]


@dataclass(frozen=True)
class Cloud:
    account: Account
    region: str
    service: str
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def _client(self) -> Any:
        return self.account.client(self.service, self.region)

    def inputs(self, op: str) -> Any:
        meta = self._client.meta
        return meta.service_model.operation_model(meta.method_to_api_mapping[op]).input_shape

    def spelling(self, op: str, name: str) -> str | None:
        return member(name, self.inputs(op).members, self.names)

    def call(self, op: str, **params: Any) -> dict[str, Any]:
        """Call an operation with `params` in Pulumi's or the API's spelling."""
        return getattr(self._client, op)(**to_api(params, self.inputs(op), self.names))

    def pages(self, op: str, **params: Any) -> Iterator[dict[str, Any]]:
        return iter(self._client.get_paginator(op).paginate(**params))

    def facts(self) -> dict[str, str]:
        return {"account": self.account.number, "region": self.region, "partition": partition_of(self.region).name}


def is_missing(error: ClientError) -> bool:
    """Return whether an error says that the resource does not exist: by its code, for Batch only by its message."""
    body = error.response.get("Error", {})
    return any(mark in f"{body.get('Code')} {body.get('Message')}" for mark in _GONE)
