"""Permissions of Google Cloud that exist, for the services that a stack deals with."""

from functools import cache

from accel.catalog.tables import rows


@cache
def gcp_permissions() -> frozenset[str]:
    """Every permission that some predefined role has, such as `batch.jobs.delete`; of no other service than those of
    the file.

    Source: https://github.com/iann0036/iam-dataset (gcp/roles at 2073fa5, 2026-08-22), which reads them from IAM.
    """
    return frozenset(f"{row['resource']}.{verb}" for row in rows("gcp_permissions.csv") for verb in row.parts("verbs"))
