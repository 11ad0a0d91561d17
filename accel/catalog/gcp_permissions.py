"""Existing Google Cloud permissions, for the services that a stack uses."""

from functools import cache

from accel.catalog.tables import rows


@cache
def gcp_permissions() -> frozenset[str]:
    """Return every permission of the file's services that some predefined role holds, such as `batch.jobs.delete`.
    Source: https://github.com/iann0036/iam-dataset (gcp/roles at 2073fa5, 2026-08-22), which reads them from IAM."""
    return frozenset(f"{row['resource']}.{verb}" for row in rows("gcp_permissions.csv") for verb in row.parts("verbs"))
