"""The ground of custom jobs on Vertex AI: the service itself, an account, and a bucket in the jobs' region."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pydantic import Field

from ..base import Component, Spec, once
from .job_bucket import READS, WRITES, JobBucketSpec, job_bucket, job_roles
from .service_accounts import repository_role
from .services import enable_services
from .vm_account import VmAccount, VmAccountArgs, VmAccountSpec

SERVICES = ("aiplatform", "compute", "logging", "artifactregistry")

USER = "roles/aiplatform.user"
"""Role with which the code of a job accesses Vertex AI itself, such as TensorBoard."""

PULLER = "gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
"""Domain of the agent that pulls images for custom jobs: it is never the job's own account. Source:
https://docs.cloud.google.com/vertex-ai/docs/general/custom-service-account"""


class VertexJobsSpec(Spec):
    """The ground of custom jobs on Vertex AI."""

    account: VmAccountSpec = Field(
        default=VmAccountSpec(),
        description="Resources that jobs may access, in addition to their bucket; Vertex AI may pull from listed "
        "repositories of other projects",
    )
    bucket: JobBucketSpec = JobBucketSpec()


@dataclass(frozen=True, kw_only=True)
class VertexJobsArgs:
    """The spec, the project and the jobs' region, and whether jobs write to a TensorBoard."""

    spec: VertexJobsSpec
    project: str
    region: str
    tensorboard: bool = False


class VertexJobs(Component):
    """A staging bucket, and an account that may use Vertex AI, log, and write to the bucket. Vertex AI needs no grant
    to run jobs as an account of its own project; submitters need roles/aiplatform.user in it and
    roles/iam.serviceAccountUser on the account. The bucket lies in the jobs' region, and in no wider one, as
    TensorBoard requires. Sources: https://docs.cloud.google.com/iam/docs/attach-service-accounts,
    https://docs.cloud.google.com/vertex-ai/docs/experiments/tensorboard-setup"""

    TYPE = "accel:gcp:VertexJobs"

    bucket: pulumi.Output[str]
    service_account: pulumi.Output[str]

    def __init__(self, name: str, args: VertexJobsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        services = enable_services(self, name, args.project, SERVICES)
        bucket = job_bucket(self, name, spec.bucket, args.project, args.region)
        account = VmAccount(name, VmAccountArgs(spec=spec.account, project=args.project, roles=[USER]), self.child())
        # TensorBoard's page asks for this role, even for the whole project. Under the jobs' condition it has no bucket.
        writes = "roles/storage.admin" if args.tensorboard else WRITES
        reads = [*READS, *(["roles/storage.legacyBucketReader"] if args.tensorboard else [])]
        granted = job_roles(self, f"{name}-staging", bucket.name, account.member, writes, reads)
        puller = bucket.project_number.apply(lambda number: f"serviceAccount:service-{number and int(number)}@{PULLER}")
        pulls = [
            repository_role(self, name, one, puller)
            for one in dict.fromkeys(spec.account.repositories)
            if one.split("/")[1] != args.project  # its own project's it may read already
        ]
        self.bucket = bucket.name
        ready = [*granted, *pulls, *(service.id for service in services)]
        self.service_account = once(account.email, *ready)
        self.finish()
