"""The bucket for the code that jobs are sent with."""

from __future__ import annotations

import pulumi
from pydantic import Field

from accel.contract import buckets

from ..base import Component, Spec, join
from ..sdk import aws


class CodeBucketSpec(Spec):
    """Settings of the bucket. Its content can be sent again."""

    keep_days: int = Field(
        default=90,
        ge=2,
        description="Days after which code is deleted, since it was last sent; must be longer than a job waits and "
        "runs",
    )
    force_delete: bool = Field(
        default=True, description="Delete the bucket and all of its content when the stack is destroyed"
    )
    protect: bool = Field(default=False, description="Refuse to delete the bucket")


class CodeBucket(Component):
    """An S3 bucket that only roles can access, encrypted by S3. Replacing it fails jobs that wait with code in it."""

    TYPE = "accel:aws:CodeBucket"

    bucket: pulumi.Output[str]
    folder_arn: pulumi.Output[str]
    """ARN of all present and future code objects."""
    arn: pulumi.Output[str]

    def __init__(self, name: str, spec: CodeBucketSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        made = aws.s3.Bucket(name, force_destroy=spec.force_delete, opts=self.child(protect=spec.protect))
        closed = aws.s3.BucketPublicAccessBlock(
            name,
            bucket=made.id,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self.child(),
        )
        aws.s3.BucketLifecycleConfiguration(
            name,
            bucket=made.id,
            rules=[
                aws.s3.BucketLifecycleConfigurationRuleArgs(
                    id="code",
                    status="Enabled",
                    filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=f"{buckets.CODE}/"),
                    expiration=aws.s3.BucketLifecycleConfigurationRuleExpirationArgs(days=spec.keep_days),
                    abort_incomplete_multipart_upload=(
                        aws.s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
                            days_after_initiation=buckets.UPLOAD_DAYS
                        )
                    ),
                ),
            ],
            # S3 refuses two simultaneous changes of one bucket: OperationAborted. Source:
            # https://github.com/hashicorp/terraform-provider-aws/issues/7628
            opts=self.child(depends_on=[closed]),
        )
        self.bucket = made.id
        self.arn = made.arn
        self.folder_arn = join(made.arn, f"/{buckets.CODE}/*")
        self.finish()
