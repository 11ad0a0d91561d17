"""One maker for each component of Google Batch, Vertex AI and image repositories, for tests and laws."""

from collections.abc import Callable
from typing import Any

import pulumi

from components.base import Component
from components.gcp.batch_jobs import BatchJobs, BatchJobsArgs, BatchJobsSpec
from components.gcp.batch_template import BatchTemplate, BatchTemplateArgs, BatchTemplateSpec
from components.gcp.claim_database import ClaimDatabase, ClaimDatabaseArgs, ClaimDatabaseSpec
from components.gcp.code_bucket import CodeBucket, CodeBucketArgs
from components.gcp.image_repository import GcpImageRepositorySpec, ImageRepository, ImageRepositoryArgs
from components.gcp.job_bucket import JobBucketSpec
from components.gcp.job_notifications import JobNotifications, JobNotificationsArgs, JobNotificationsSpec
from components.gcp.persistent_resource import PersistentResource, PersistentResourceArgs, PersistentResourceSpec
from components.gcp.services import Services, ServicesArgs, ServicesSpec
from components.gcp.spend_ledger import GcpSpendLedgerSpec, SpendLedger, SpendLedgerArgs
from components.gcp.tensorboard import Tensorboard, TensorboardArgs, TensorboardSpec
from components.gcp.vertex_jobs import VertexJobs, VertexJobsArgs, VertexJobsSpec
from tests.support.gcp import PROJECT

from .vm_makers import ACCOUNT, account, wired

REGION = "us-central1"
HERE: dict[str, Any] = {"project": PROJECT, "region": REGION}


def batch_jobs(name: str, **values: object) -> BatchJobs:
    spec = BatchJobsSpec.model_validate(values)
    return BatchJobs(name, BatchJobsArgs(spec=spec, network=wired()["network"], **HERE))


def notifications(name: str, **values: object) -> JobNotifications:
    publisher = pulumi.Output.from_input(f"serviceAccount:{ACCOUNT}")
    spec = JobNotificationsSpec.model_validate(values)
    return JobNotifications(name, JobNotificationsArgs(spec=spec, project=PROJECT, publisher=publisher))


def template_spec(**values: object) -> BatchTemplateSpec:
    return BatchTemplateSpec.model_validate({"zone": f"{REGION}-a", "machine_type": "g2-standard-8", **values})


def batch_template(name: str, **values: object) -> BatchTemplate:
    return BatchTemplate(name, BatchTemplateArgs(spec=template_spec(**values), service_account=account(), **wired()))


def vertex_jobs(name: str, tensorboard: bool = False, **values: object) -> VertexJobs:
    spec = VertexJobsSpec.model_validate(values)
    return VertexJobs(name, VertexJobsArgs(spec=spec, tensorboard=tensorboard, **HERE))


def spend_ledger(name: str, **values: object) -> SpendLedger:
    return SpendLedger(name, SpendLedgerArgs(spec=GcpSpendLedgerSpec.model_validate(values), **HERE))


def claim_database(name: str, **values: object) -> ClaimDatabase:
    return ClaimDatabase(name, ClaimDatabaseArgs(spec=ClaimDatabaseSpec.model_validate(values), **HERE))


def code_bucket(name: str) -> CodeBucket:
    return CodeBucket(name, CodeBucketArgs(spec=JobBucketSpec(), readers={"jobs": account()}, **HERE))


def tensorboard(name: str, **values: object) -> Tensorboard:
    return Tensorboard(name, TensorboardArgs(spec=TensorboardSpec.model_validate(values), **HERE))


def kept_spec(**pool: object) -> PersistentResourceSpec:
    return PersistentResourceSpec.model_validate({"pools": {"gpu": {"machine_type": "g2-standard-24", **pool}}})


def persistent_resource(name: str, network: dict[str, Any] | None = None, **pool: object) -> PersistentResource:
    return PersistentResource(name, PersistentResourceArgs(spec=kept_spec(**pool), **HERE, **(network or {})))


def repository(name: str, **values: object) -> ImageRepository:
    return ImageRepository(name, ImageRepositoryArgs(spec=GcpImageRepositorySpec.model_validate(values), **HERE))


def services(name: str) -> Services:
    return Services(name, ServicesArgs(spec=ServicesSpec(services=["compute", "iam"]), project=HERE["project"]))


MAKERS: dict[str, Callable[[str], Component]] = {
    "batch-jobs": batch_jobs,
    "batch-notifications": lambda name: notifications(name, retention_s=86_400),
    "batch-template": batch_template,
    "batch-template-spot": lambda name: batch_template(
        name, machine_type="n1-standard-8", accelerator="t4", accelerator_count=2, capacity="spot"
    ),
    "vertex-jobs": lambda name: vertex_jobs(
        name, account={"repositories": ["projects/other/locations/us/repositories/images"]}
    ),
    "vertex-claims": claim_database,
    "gke-code": code_bucket,
    "google-spend-ledger": spend_ledger,
    "vertex-tensorboard": tensorboard,
    "vertex-persistent-resource": persistent_resource,
    "vertex-persistent-resource-growing": lambda name: persistent_resource(
        name, {"network_attachment": "projects/p/regions/us-central1/networkAttachments/a"},
        min_replicas=1, max_replicas=4,
    ),
    "gcp-image-repository": repository,
    "gcp-services": services,
}  # fmt: skip
