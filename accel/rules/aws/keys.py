"""Customer keys of AWS KMS: who needs them besides the stack's own roles."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from accel.catalog.aws_partitions import partition_of
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

KEY = rule("aws.kms.key")
VOLUMES = rule("aws.kms.volumes")
LOGS = rule("aws.kms.logs")

AUTO_SCALING = "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
_KEY = re.compile(r"arn:[a-z-]+:kms:([a-z0-9-]+):\d{12}:key/\S+")


class Scope(NamedTuple):
    """The keys of one region, and the names under which that region's services use them."""

    keys: tuple[str, ...]
    services: tuple[str, ...]


def keys(field: str, arns: Iterable[str]) -> list[Finding]:
    fix = "write arn:aws:kms:<region>:<account>:key/<id>"
    return [
        KEY.finding(f"{field}[{i}]", f'is "{arn}", not the ARN of a key', fix)
        for i, arn in enumerate(arns)
        if not _KEY.fullmatch(arn)
    ]


def via(arns: Iterable[str], *services: str) -> list[Scope]:
    """Return keys by region, with the values of kms:ViaService: a key serves resources of its own region. Source:
    https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html"""
    by_region: dict[str, list[str]] = {}
    for arn in sorted(set(arns)):
        by_region.setdefault(arn.split(":")[3], []).append(arn)
    return [
        Scope(tuple(each), tuple(f"{service}.{region}.{partition_of(region).suffix}" for service in services))
        for region, each in by_region.items()
    ]


def volumes(field: str, key: str | None) -> list[Finding]:
    """Check the key of volumes of instances that Batch starts by Auto Scaling groups."""
    fix = f"let its policy admit {AUTO_SCALING} as docs/keys.md shows"
    return [] if key is None else [VOLUMES.finding(field, "is a key of your own, which instances start with", fix)]


def logs(field: str, key: str | None) -> list[Finding]:
    region = (key or "").split(":")[3:4] or ["<region>"]
    fix = f"let its policy admit logs.{region[0]}.{partition_of(region[0]).suffix} as docs/keys.md shows"
    return [] if key is None else [LOGS.finding(field, "is a key of your own, which CloudWatch Logs uses", fix)]
