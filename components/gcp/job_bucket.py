"""The bucket that jobs of one ground write to."""

from __future__ import annotations

from pydantic import Field

from accel.contract import buckets

from ..base import Component, Spec
from ..sdk import gcp


class JobBucketSpec(Spec):
    """For outputs and checkpoints of jobs."""

    keep_days: int = Field(default=90, ge=1, description="what jobs wrote under accel-jobs/ is deleted after that")
    force_delete: bool = Field(default=False, description="the bucket goes with the stack, whatever is in it")


def job_bucket(self: Component, name: str, spec: JobBucketSpec, project: str, location: str) -> gcp.storage.Bucket:
    """A bucket that nobody reaches but by roles, and which forgets what is old."""
    return gcp.storage.Bucket(
        name,
        project=project,
        location=location,
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        force_destroy=spec.force_delete,
        # Records are replaced many times; none of their former states is of use.
        soft_delete_policy=gcp.storage.BucketSoftDeletePolicyArgs(retention_duration_seconds=0),
        lifecycle_rules=[
            gcp.storage.BucketLifecycleRuleArgs(
                action=gcp.storage.BucketLifecycleRuleActionArgs(type="Delete"),
                condition=gcp.storage.BucketLifecycleRuleConditionArgs(
                    age=spec.keep_days, matches_prefixes=[f"{buckets.JOBS}/"]
                ),
            )
        ],
        opts=self.child(),
    )
