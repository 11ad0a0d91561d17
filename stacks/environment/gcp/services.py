"""The APIs of Google Cloud that the sections of an environment need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import pulumi

from components.gcp import batch_jobs, budget_stop, reconcile_function, vertex_jobs
from components.gcp.services import Services, ServicesArgs, ServicesSpec
from components.gcp.spend_ledger import GcpSpendLedgerSpec
from components.kubernetes.storage import FilestoreVolume

from .providers import gcp_provider
from .vms_config import TpuVmTarget

if TYPE_CHECKING:
    from ..config import Environment
    from .config import Gcp

BASE = ("cloudresourcemanager", "cloudquotas", "iam", "serviceusage")
"""APIs for roles, accounts and this list itself, and for `stacks quota`."""
CLUSTER = ("artifactregistry", "compute", "container", "iamcredentials", "logging", "monitoring")
"""APIs of a cluster (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/hardening-your-cluster) and of the
registry of images."""
MACHINES = ("artifactregistry", "compute", "iap", "logging", "oslogin", "storage")
"""APIs of machines; `accel-jobs exec` connects by OS Login and Identity-Aware Proxy."""


def _filestore(section: Gcp) -> bool:
    volumes = section.workloads.volumes.values() if section.workloads else ()
    return any(isinstance(one.volume, FilestoreVolume) for one in volumes)


def _tpus(section: Gcp) -> bool:
    vms = section.vms
    return vms is not None and bool(
        vms.tpus
        or vms.tpu_queues
        or vms.queued_tpus
        or any(isinstance(one, TpuVmTarget) for one in vms.targets.values())
    )


def _named(document: Any, fields: tuple[str, ...]) -> bool:
    if isinstance(document, dict):
        members = cast("dict[str, Any]", document)
        return any(members.get(name) for name in fields) or _named(list(members.values()), fields)
    return isinstance(document, list) and any(_named(each, fields) for each in cast("list[Any]", document))


Needs = Callable[["Gcp"], Any]
_PARTS: tuple[tuple[str, Needs, tuple[str, ...]], ...] = (
    ("gcp", lambda section: True, BASE),
    ("gcp.network", lambda section: section.network, ("compute",)),
    ("gcp.cluster", lambda section: section.cluster or section.accounts.workloads, CLUSTER),
    ("gcp.vms", lambda section: section.vms, MACHINES),
    ("gcp.vms", _tpus, ("tpu",)),
    ("gcp.vms.reconcile", lambda section: section.vms and section.vms.reconcile, reconcile_function.SERVICES),
    ("gcp.batch", lambda section: section.batch, (*batch_jobs.SERVICES, "storage")),
    ("gcp.batch.notifications", lambda section: section.batch and section.batch.notifications, ("pubsub",)),
    ("gcp.vertex", lambda section: section.vertex, (*vertex_jobs.SERVICES, "storage")),
    ("gcp.vertex.claims", lambda section: section.vertex and section.vertex.claims, ("firestore",)),
    ("gcp.images", lambda section: section.images, ("artifactregistry",)),
    ("gcp.workloads.code", lambda section: section.workloads and section.workloads.code, ("storage",)),
    ("gcp.workloads.volumes", _filestore, ("file",)),
    ("gcp.budgets", lambda section: section.budgets, ("billingbudgets", "cloudbilling")),
    ("gcp.budgets", lambda section: any(one.recipients.emails for one in section.budgets.values()), ("monitoring",)),
    ("gcp.budgets", lambda section: any(one.watched for one in section.budgets.values()), budget_stop.SERVICES),
    ("gcp", lambda section: _named(section.model_dump(), ("secrets", "chat_secret")), ("secretmanager",)),
    ("gcp", lambda section: _named(section.model_dump(), ("read_buckets", "write_buckets")), ("storage",)),
)
"""Parts of the section and the APIs that they need, by the first part of their names."""


def needed_services(environment: Environment) -> dict[str, list[str]]:
    """Return APIs with the parts that need each; empty without a Google section. `compute`: compute.googleapis.com."""
    found: dict[str, list[str]] = {}
    for part, service in _needs(environment):
        parts = found.setdefault(service, [])
        if part not in parts:
            parts.append(part)
    return dict(sorted(found.items()))


def _needs(environment: Environment) -> Iterator[tuple[str, str]]:
    section, allowances = environment.gcp, environment.allowances
    if section is None:
        return
    yield from ((part, service) for part, uses, services in _PARTS if uses(section) for service in services)
    if allowances and isinstance(allowances.ledger_spec(aws=environment.aws is not None), GcpSpendLedgerSpec):
        yield "allowances", "firestore"


def deploy(environment: Environment, section: Gcp) -> Services:
    """Enable them with a provider of their own: that of all others waits for them."""
    first = gcp_provider(environment, section, f"gcp-{section.region}-services")
    spec = ServicesSpec(services=list(needed_services(environment)))
    args = ServicesArgs(spec=spec, project=section.project)
    return Services("services", args, pulumi.ResourceOptions(providers=[first]))
