"""The bucket that jobs of one ground write to, and the permissions of their account on it."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
from pydantic import Field

from accel.contract import buckets

from ..base import Component, Spec, map_present
from ..sdk import gcp

WRITES, READS = "roles/storage.objectUser", ("roles/storage.objectViewer",)
"""Roles of the jobs' account: to write everything but the stack's own objects, and to read their whole bucket."""


class JobBucketSpec(Spec):
    """A bucket for outputs and checkpoints of jobs."""

    keep_days: int = Field(
        default=90, ge=1, description="Days after which objects that jobs wrote under accel-jobs/ are deleted"
    )
    force_delete: bool = Field(default=False, description="Delete the bucket with the stack, even if it is not empty")


def unfinished_uploads() -> gcp.storage.BucketLifecycleRuleArgs:
    """Return the rule that drops the parts of incomplete uploads. Its only other conditions are on names."""
    return gcp.storage.BucketLifecycleRuleArgs(
        action=gcp.storage.BucketLifecycleRuleActionArgs(type="AbortIncompleteMultipartUpload"),
        condition=gcp.storage.BucketLifecycleRuleConditionArgs(age=buckets.UPLOAD_DAYS),
    )


def job_bucket(self: Component, name: str, spec: JobBucketSpec, project: str, location: str) -> gcp.storage.Bucket:
    return gcp.storage.Bucket(
        name,
        project=project,
        location=location,
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        force_destroy=spec.force_delete,
        # Records are replaced many times, and their former versions are useless.
        soft_delete_policy=gcp.storage.BucketSoftDeletePolicyArgs(retention_duration_seconds=0),
        lifecycle_rules=[
            gcp.storage.BucketLifecycleRuleArgs(
                action=gcp.storage.BucketLifecycleRuleActionArgs(type="Delete"),
                condition=gcp.storage.BucketLifecycleRuleConditionArgs(
                    age=spec.keep_days, matches_prefixes=[f"{buckets.JOBS}/"]
                ),
            ),
            unfinished_uploads(),
        ],
        opts=self.child(),
    )


def job_roles(
    self: Component,
    name: str,
    bucket: pulumi.Output[str],
    member: pulumi.Output[str],
    writes: str = WRITES,
    reads: Sequence[str] = READS,
) -> list[pulumi.Output[str]]:
    """Allow the jobs' account to read the bucket and write all but the stack's own objects; return the grants' ids.
    Google checks a list request against the bucket's name, so no condition on objects would allow it."""
    condition = gcp.storage.BucketIAMMemberConditionArgs(
        title="accel: what jobs may write",
        description="neither targets, queues and records nor code",
        expression=map_present(bucket, job_write_condition),
    )
    granted = [(name, writes, condition), *((f"{name}-{role.rpartition('.')[2]}", role, None) for role in reads)]
    return [
        gcp.storage.BucketIAMMember(
            grant, bucket=bucket, role=role, member=member, condition=when, opts=self.child()
        ).id
        for grant, role, when in granted
    ]


def job_write_condition(bucket: str) -> str:
    """Return the condition under which jobs may write to an object. It needs uniform bucket-level access, and has at
    most 12 logical operators. Sources: https://docs.cloud.google.com/iam/docs/conditions-attribute-reference,
    https://docs.cloud.google.com/iam/docs/conditions-resource-attributes, https://cloud.google.com/iam/quotas"""

    def starts(prefix: str) -> str:
        return f'resource.name.startsWith("projects/_/buckets/{bucket}/objects/{prefix}")'

    records = [f'!resource.name.endsWith("/{each}")' for each in buckets.RECORDS]
    own = " && ".join([starts(f"{buckets.JOBS}/"), f"!{starts(f'{buckets.CODE}/')}", *records])
    return f'resource.type == "storage.googleapis.com/Object" && (!{starts(buckets.RESERVED)} || ({own}))'
