"""The bucket for the code that jobs in a cluster are sent with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from ..base import Component, join, once
from ..sdk import gcp
from .job_bucket import JobBucketSpec, job_bucket


@dataclass(frozen=True, kw_only=True)
class CodeBucketArgs:
    """The spec, the bucket's location, and the e-mails of the accounts that pods run as, by their namespaces' keys."""

    spec: JobBucketSpec
    project: str
    region: str
    readers: Mapping[str, pulumi.Input[str]]


class CodeBucket(Component):
    """A bucket that the pods of some namespaces may read. Submitters need roles/storage.objectUser on it. Replacing the
    bucket fails the jobs that wait with code in the old one."""

    TYPE = "accel:gcp:CodeBucket"

    bucket: pulumi.Output[str]

    def __init__(self, name: str, args: CodeBucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        bucket = job_bucket(self, name, args.spec, args.project, args.region)
        reads = [
            gcp.storage.BucketIAMMember(
                f"{name}-{key}",
                bucket=bucket.name,
                role="roles/storage.objectViewer",
                member=join("serviceAccount:", email),
                opts=self.child(),
            ).id
            for key, email in args.readers.items()
        ]
        # A job fails if it starts before its account may read: users of the bucket wait.
        self.bucket = once(bucket.name, *reads)
        self.finish()
