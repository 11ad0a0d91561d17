"""The ground of jobs on Google Batch: the service itself, an account, a bucket, and a firewall among a job's VMs."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pydantic import Field

from ..base import Component, Spec, once
from .firewalls import among
from .job_bucket import JobBucketSpec, job_bucket, job_roles
from .services import enable_services
from .vm_account import VmAccount, VmAccountArgs, VmAccountSpec

TAG = "accel-batch"
"""Network tag of every VM that Batch creates for these jobs."""

SERVICES = ("batch", "compute", "logging", "artifactregistry")
"""Prerequisites (https://docs.cloud.google.com/batch/docs/get-started#prerequisites) and the registry of images."""

REPORTER = "roles/batch.agentReporter"
"""Without this role a VM's agent never reports, and its tasks never begin. Source:
https://docs.cloud.google.com/batch/docs/get-started#project-prerequisites"""


class BatchJobsSpec(Spec):
    """The ground of jobs on Google Batch."""

    account: VmAccountSpec = Field(
        default=VmAccountSpec(), description="Resources that jobs may access, in addition to their bucket"
    )
    bucket: JobBucketSpec = JobBucketSpec()


@dataclass(frozen=True, kw_only=True)
class BatchJobsArgs:
    """The spec, the project and its region, and the network of the VMs."""

    spec: BatchJobsSpec
    project: str
    region: str
    network: pulumi.Input[str]


class BatchJobs(Component):
    """A bucket, and an account that may report to Batch, log, pull images, and write to the bucket. Submitters need
    roles/batch.jobsEditor in the project and roles/iam.serviceAccountUser on the account. A replaced bucket leaves
    outputs and checkpoints behind: running jobs go on writing to the old one."""

    TYPE = "accel:gcp:BatchJobs"

    bucket: pulumi.Output[str]
    service_account: pulumi.Output[str]
    member: pulumi.Output[str]

    def __init__(self, name: str, args: BatchJobsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        services = enable_services(self, name, args.project, SERVICES)
        bucket = job_bucket(self, name, args.spec.bucket, args.project, args.region)
        account = VmAccount(
            name, VmAccountArgs(spec=args.spec.account, project=args.project, roles=[REPORTER]), self.child()
        )
        granted = job_roles(self, f"{name}-outputs", bucket.name, account.member)
        among(self, name, args.project, args.network, TAG)
        self.bucket = bucket.name
        # A job fails if it starts before the account may write and before Batch is enabled: users wait.
        ready = [*granted, *(service.id for service in services)]
        self.service_account = once(account.email, *ready)
        self.member = account.member
        self.finish()
