"""Each cloud's name for the limit on a kind of machine, and where to request an increase."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from accel.catalog.nearest import UnknownName
from accel.catalog.tables import number, parts, rows

Purchase = Literal["on-demand", "spot", "committed", ""]
Scope = Literal["region", "zone", "global"]
Confidence = Literal["high", "medium", "low"]

SERVICES = {"aws": "ec2", "gcp": "compute"}
"""Services that limit machines by default. Google counts Vertex AI (`aiplatform`) and Cloud TPU (`tpu`) apart."""

_CLASS = re.compile(r"u7inh?|u7i|[a-z]+")


@dataclass(frozen=True, slots=True)
class Quota:
    """One limit, in `unit` (vCPU, GPU, GB, chip or core) over `scope`. `code` is AWS's quota code or Google's metric,
    `quota_id` what Service Quotas or Cloud Quotas expects in a request for an increase, empty if unknown. `dimension`
    narrows a Google quota: gpu_family=NVIDIA_H100. `default` is that of a new account, None if none is published.
    `source` is a URL; `confidence` rates the row."""

    cloud: str
    service: str
    code: str
    quota_id: str
    name: str
    unit: str
    scope: Scope
    purchase: Purchase
    applies_to: tuple[str, ...]
    dimension: str
    default: float | None
    confidence: Confidence
    source: str
    checked: str
    notes: str

    @property
    def key(self) -> str:
        """The code with its dimension, if any: GPUS_PER_GPU_FAMILY[gpu_family=NVIDIA_H100]."""
        return f"{self.code}[{self.dimension}]" if self.dimension else self.code

    def __str__(self) -> str:
        return f"{self.name} ({self.key})"


@cache
def quotas() -> tuple[Quota, ...]:
    return tuple(_quota(row) for row in rows("quotas.csv"))


def _quota(row: dict[str, str]) -> Quota:
    return Quota(
        cloud=row["cloud"],
        service=row["service"],
        code=row["code"],
        quota_id=row["quota_id"],
        name=row["name"],
        unit=row["unit"],
        scope=cast(Scope, row["scope"]),
        purchase=cast(Purchase, row["purchase"]),
        applies_to=parts(row["applies_to"]),
        dimension=row["dimension"],
        default=number(row["default"]),
        confidence=cast(Confidence, row["confidence"]),
        source=row["source"],
        checked=row["checked"],
        notes=row["notes"],
    )


@cache
def _index() -> dict[tuple[str, str, str, str], Quota]:
    return {
        (quota.cloud, quota.service, quota.purchase, name): quota for quota in quotas() for name in quota.applies_to
    }


def quota_for(cloud: str, name: str, spot: bool = False, *, service: str | None = None) -> Quota | None:
    """Return the quota that limits an AWS instance type or family, or a Google accelerator (a key of accelerators.csv),
    `cpus`, `ssd` or `gpus-all-regions`; None if unknown, which never means "no limit". AWS names quotas by letters (P,
    G and VT) or generations (P5), so a family is looked up whole, then by its letters. Raise UnknownName for another
    cloud or service."""
    if cloud not in SERVICES:
        raise UnknownName("cloud", cloud, SERVICES)
    service = service or SERVICES[cloud]
    known = {quota.service for quota in quotas() if quota.cloud == cloud}
    if service not in known:
        raise UnknownName("service with quotas", service, known)
    purchase = "spot" if spot else "on-demand"
    names = _aws_names(name) if cloud == "aws" else (name,)
    tries = [(cloud, service, bought, each) for each in names for bought in (purchase, "")]
    return next((_index()[key] for key in tries if key in _index()), None)


def _aws_names(name: str) -> tuple[str, ...]:
    family = name.partition(".")[0]
    letters = _CLASS.match(family)
    return (family, letters[0]) if letters else (family,)


def standard_of(quota: Quota) -> Quota | None:
    """Return the on-demand quota of a Spot or committed one of Google. In a project without a preemptible quota, Spot
    machines count against it. Source: https://cloud.google.com/compute/resource-usage"""
    if quota.cloud != "gcp" or quota.purchase in ("on-demand", ""):
        return None
    return quota_for("gcp", quota.applies_to[0], service=quota.service)
