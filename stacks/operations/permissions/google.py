"""Google Cloud permissions, and the narrowest predefined roles that contain them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from accel.catalog.gcp_permissions import gcp_permissions
from accel.catalog.gcp_roles import OPERATIONS, Operation, least, of_targets, of_types

from ...environment.gcp.services import needed_services
from .program import RegisteredResource, registered_resources

if TYPE_CHECKING:
    from ...environment.config import Environment
    from ...environment.gcp.config import Gcp

BILLING = "billing."
"""Prefix of permissions that are granted on the billing account, not in the project. Source:
https://docs.cloud.google.com/billing/docs/how-to/billing-access"""
VERBS: dict[Operation, str] = {"create": "create", "read": "get", "update": "update", "delete": "delete"}
KUBERNETES = ("container.clusters.connect", "container.clusters.get")
AWAITED = ("container.events.list", "container.pods.list", "container.replicaSets.list")
"""Resources that the provider watches until Deployments, DaemonSets and Jobs are ready."""
GRANTS = {"container.roles": ("bind", "escalate"), "container.clusterRoles": ("bind", "escalate")}
"""Permissions without which the creator of a cluster role may only grant what RBAC has granted to them. Sources:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control (interaction with IAM),
https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping"""
BOUND = {
    "container.roleBindings": "container.roles.bind",
    "container.clusterRoleBindings": "container.clusterRoles.bind",
}
OTHER = "container.thirdPartyObjects"
"""Objects of custom definitions. Source: https://docs.cloud.google.com/iam/docs/roles-permissions/container"""


class UnknownType(Exception):
    """A type that is missing from the table."""


def document(environment: Environment, project: str, stack: str, purpose: str) -> dict[str, Any]:
    """Return the APIs to enable, which a deployment does itself, and the grants; empty without a Google section."""
    section = environment.gcp
    if section is None:
        return {}
    if purpose == "submit":
        permissions = set(submitter(environment, section))
    else:
        resources = registered_resources(environment.model_copy(update={"aws": None}), project, stack)
        permissions = set(operator(resources, OPERATIONS if purpose == "deploy" else ("read",)))
    accounts = sorted({one.billing_account for one in section.budgets.values()})
    parted = [
        (f"projects/{section.project}", {one for one in permissions if not one.startswith(BILLING)}),
        *((f"billingAccounts/{each}", {one for one in permissions if one.startswith(BILLING)}) for each in accounts),
    ]
    grants = [_grant(where, each, purpose) for where, each in parted if each]
    services = [f"{each}.googleapis.com" for each in needed_services(environment)] if purpose == "deploy" else []
    return {"services": services, "grants": grants}


def _grant(where: str, permissions: Collection[str], purpose: str) -> dict[str, Any]:
    chosen = least(permissions, reading=purpose == "preview")
    return {"on": where, "roles": [one.name for one in chosen], "permissions": sorted(permissions)}


def operator(resources: Sequence[RegisteredResource], operations: Collection[Operation]) -> Iterator[str]:
    """Raise UnknownType for a type of Google Cloud that the table lacks."""
    for kind in sorted({one.type for one in resources}):
        if kind.startswith("kubernetes:"):
            yield from _of_kind(kind, operations)
        elif kind in of_types():
            yield from (each for operation in operations for each in of_types()[kind][operation])
        elif kind.startswith("gcp:"):
            raise UnknownType(kind)


def _of_kind(kind: str, operations: Collection[Operation]) -> Iterator[str]:
    """Yield the permissions on a Kubernetes type, which GKE also takes from IAM."""
    resource = f"container.{plural(kind.rpartition(':')[2])}"
    known = resource if f"{resource}.create" in gcp_permissions() else OTHER
    yield from KUBERNETES
    yield from AWAITED
    yield from (f"{known}.{VERBS[operation]}" for operation in operations)
    if "create" in operations:
        yield from (f"{known}.{verb}" for verb in GRANTS.get(known, ()))
        if known in BOUND:
            yield BOUND[known]


def plural(kind: str) -> str:
    """Return a kind in IAM's spelling: networkPolicies for NetworkPolicy."""
    name = kind[0].lower() + kind[1:]
    if name.startswith("aPI"):
        name = f"api{name[3:]}"
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def submitter(environment: Environment, section: Gcp) -> Iterator[str]:
    """Yield the permissions to submit, follow and end jobs on the section's targets."""
    for kind in kinds(environment, section):
        yield from of_targets()[kind]


def kinds(environment: Environment, section: Gcp) -> list[str]:
    """Return the kinds of the section's targets; `ledger` where Firestore keeps the reservations of jobs' cost."""
    found = {target.kind for target in section.vms.targets.values()} if section.vms else set[str]()
    found |= {"gke"} if section.workloads and section.workloads.targets else set[str]()
    found |= {"google-batch"} if section.batch and section.batch.targets else set[str]()
    found |= {"vertex"} if section.vertex and section.vertex.targets else set[str]()
    if found and "allowances" in needed_services(environment).get("firestore", ()):
        found.add("ledger")
    return sorted(found)
