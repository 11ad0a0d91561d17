"""EC2 limits of an account, from Service Quotas."""

import os
from collections.abc import Iterable
from typing import Any

from accel.diagnostics.errors import CloudRefused

from ..quota_cache import MAX_AGE_S, Limit, cached_limits
from . import clients
from .clients import Client
from .errors import asking

SERVICE = "ec2"

_IDENTITY = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SERVICE_QUOTAS")
"""They determine the account: one account's limits must not be used for another."""


def client(region: str, *, attempts: int = 5) -> Client:
    """Create a client that retries, since the service throttles early."""
    with asking(f"service-quotas in {region}"):
        return clients.client("service-quotas", region, connect_s=3, read_s=10, attempts=attempts)


def read(quotas: Client, code: str) -> Limit:
    """Return the account's limit or AWS's default, without a value if neither may be read. Raise NoCredentials and
    CloudSilent. https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html"""
    missing = quotas.exceptions.NoSuchResourceException
    for operation in (quotas.get_service_quota, quotas.get_aws_default_service_quota):
        try:
            with asking(f"GetServiceQuota {code}"):
                try:
                    answer: dict[str, Any] = operation(ServiceCode=SERVICE, QuotaCode=code)
                except missing:
                    continue
        except CloudRefused as refused:
            return Limit(None, refused.message)
        quota: dict[str, Any] = answer.get("Quota") or {}
        value = quota.get("Value")
        # Service Quotas answers without a value, and with an ErrorReason, if it could not ask EC2.
        if isinstance(value, int | float):
            return Limit(float(value))
    return Limit(None, f"Service Quotas has no {code}")


def limits(
    region: str, codes: Iterable[str], *, max_age_s: float = MAX_AGE_S, now: float | None = None
) -> dict[str, Limit]:
    """Return this machine's copy if recent enough, otherwise make a call for each. Raise NoCredentials, CloudSilent."""

    def ask(missing: list[str]) -> dict[str, Limit]:
        asked = client(region, attempts=2)
        return {code: read(asked, code) for code in missing}

    identity = "\n".join([region, *(os.environ.get(name, "") for name in _IDENTITY)])
    return cached_limits(identity, codes, ask, max_age_s=max_age_s, now=now)
