"""Limits from Service Quotas and running vCPUs from EC2, compared with the planned use."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from accel.catalog import UnknownName, machine
from accel.catalog.quotas import Quota, quota_for
from accel.clouds.aws import quotas as service_quotas
from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from accel.clouds.quota_cache import Limit
from accel.diagnostics.errors import BadInput, CloudRefused
from accel.quota import Pool, Use, Verdict, needs, verdict

from ..inventory.aws import Region, tags_of

COUNTED = ("pending", "running")
"""States in which an instance counts. Source:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html"""


def judge_aws(
    region: str,
    pools: Iterable[Pool],
    *,
    account_id: str | None = None,
    project: str | None = None,
    stack: str | None = None,
) -> tuple[Verdict, ...]:
    """Judge unreadable values as unknown. Instances with the tags of project and stack are a part of the pools' use.
    Raise NoCredentials, CloudSilent, and BadInput for credentials of another account than `account_id`."""
    wanted = needs(pools)
    read = readings(region, [need.quota for need in wanted if need.quota], account_id, project, stack)
    return tuple(verdict(need, *read.of(need.quota)) for need in wanted)


@dataclass(frozen=True)
class Running:
    """vCPUs under each quota's code. `unsized` are the codes with an instance of unknown size."""

    total: dict[str, float] = field(default_factory=dict[str, float])
    own: dict[str, float] = field(default_factory=dict[str, float])
    unsized: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Readings:
    """Limits by code, and running instances; None and the reason where they may not be read."""

    limits: dict[str, Limit]
    running: Running | None
    why: str = ""

    def of(self, quota: Quota | None) -> tuple[Use | None, float | None, str]:
        """Return use, limit, and why one of them is missing."""
        if quota is None:
            return None, None, ""
        limit = self.limits[quota.code]
        why = limit.why or self.why
        if self.running is None or quota.code in self.running.unsized:
            return None, limit.value, why or f"{(self.running or Running()).unsized.get(quota.code)}: size not known"
        return Use(self.running.total.get(quota.code, 0), self.running.own.get(quota.code, 0)), limit.value, why


def readings(
    region: str, quotas: Iterable[Quota], account_id: str | None, project: str | None, stack: str | None
) -> Readings:
    """Read a region's quotas and instances; None and a reason for unreadable ones. Raise as `judge_aws` does."""
    if account_id is not None:
        check_account(region, account_id)
    asked = service_quotas.client(region)
    limits = {code: service_quotas.read(asked, code) for code in dict.fromkeys(quota.code for quota in quotas)}
    try:
        return Readings(limits, running(Region(region).instances(COUNTED), project, stack))
    except CloudRefused as refused:
        return Readings(limits, None, refused.message)


def check_account(region: str, account_id: str) -> None:
    """Raise BadInput for credentials of another account."""
    with asking("GetCallerIdentity"):
        account = client("sts", region, connect_s=3, read_s=10, attempts=3).get_caller_identity()["Account"]
    if account != account_id:
        raise BadInput(
            f"the credentials are of account {account}, and the environment is for {account_id}",
            "quotas are an account's own: use that account's credentials",
        )


def running(instances: Iterable[dict[str, Any]], project: str | None, stack: str | None) -> Running:
    """Add up DescribeInstances, without Capacity Blocks and dedicated hosts, which have quotas of their own."""
    found = Running()
    for instance in instances:
        lifecycle = instance.get("InstanceLifecycle")
        placement: dict[str, Any] = instance.get("Placement") or {}
        if lifecycle not in (None, "spot") or placement.get("Tenancy") == "host":
            continue
        quota = quota_for("aws", instance["InstanceType"], lifecycle == "spot")
        if quota is None:
            continue
        vcpus = _vcpus(instance)
        if vcpus is None:
            found.unsized[quota.code] = instance["InstanceType"]
            continue
        found.total[quota.code] = found.total.get(quota.code, 0) + vcpus
        if _is_own(instance, project, stack):
            found.own[quota.code] = found.own.get(quota.code, 0) + vcpus
    return found


def _vcpus(instance: dict[str, Any]) -> int | None:
    """Return the type's vCPUs, which quotas count even if CPU options switch some off."""
    try:
        return machine("aws", instance["InstanceType"]).vcpus
    except UnknownName:
        options: dict[str, int] = instance.get("CpuOptions") or {}
        return options.get("CoreCount", 0) * options.get("ThreadsPerCore", 0) or None


def _is_own(instance: dict[str, Any], project: str | None, stack: str | None) -> bool:
    tags = tags_of(instance)
    return None not in (project, stack) and (tags.get("accel:project"), tags.get("accel:stack")) == (project, stack)
