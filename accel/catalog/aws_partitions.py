"""The partitions of AWS, with their ARN prefixes, host name suffixes and VPC endpoint names."""

from __future__ import annotations

import re
from typing import NamedTuple


class Partition(NamedTuple):
    """A group of regions with separate accounts."""

    name: str
    """Second part of every ARN."""
    regions: str
    """Pattern of their names."""
    suffix: str
    """Of service host names."""


# Source: botocore 1.44's data/partitions.json, read on 2026-11-23. Service principals of the services used here are the
# same in all partitions, except that of CloudWatch Logs, logs.<region>.<suffix>. Source:
# https://github.com/aws/aws-cdk/blob/main/packages/aws-cdk-lib/region-info/lib/default.ts
PARTITIONS = (
    Partition("aws-cn", r"cn-\w+-\d+", "amazonaws.com.cn"),
    Partition("aws-us-gov", r"us-gov-\w+-\d+", "amazonaws.com"),
    Partition("aws-eusc", r"eusc-de-\w+-\d+", "amazonaws.eu"),
)
COMMERCIAL = Partition("aws", r"[a-z]{2}-\w+-\d+", "amazonaws.com")

REGION = r"[a-z]{2,4}(?:-[a-z]+)+-\d"

# Other services have the same prefix as elsewhere. Source, read on 2026-11-23:
# https://github.com/aws/aws-cdk/blob/main/packages/aws-cdk-lib/aws-ec2/lib/vpc-endpoint.ts
_CHINESE = frozenset(
    {"batch", "ec2", "ecr.api", "ecr.dkr", "elasticfilesystem", "lambda", "monitoring", "sagemaker.api", "sqs", "sts"}
)


def partition_of(region: str) -> Partition:
    """Return `aws` if the name matches no other partition."""
    return next((each for each in PARTITIONS if re.fullmatch(each.regions, region)), COMMERCIAL)


def endpoint_service(region: str, service: str) -> str:
    """Return the full name for a short one such as ecr.api."""
    chinese = partition_of(region).name == "aws-cn" and service in _CHINESE
    return f"{'cn.' if chinese else ''}com.amazonaws.{region}.{service}"
