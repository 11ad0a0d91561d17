"""Google service accounts: one that nodes run as, and those with which the code in pods accesses Google."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import accounts as rules

from ..base import Component, Spec, join, once
from ..sdk import gcp

NODE_ROLE = "roles/container.defaultNodeServiceAccount"
"""The minimum that a node needs: logs, metrics, its own registration. Source:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/hardening-your-cluster#use_least_privilege_sa"""

READER = "roles/artifactregistry.reader"


class NodeServiceAccountSpec(Spec):
    """An account for nodes that this stack creates."""

    repositories: list[str] = Field(
        default_factory=list,
        description="Repositories that nodes pull images from: projects/<p>/locations/<l>/repositories/<r>",
    )
    read_project_registry: bool = Field(
        default=False, description="Let nodes pull from every repository of the project"
    )
    roles: list[str] = Field(default_factory=list, description="Additional roles in the project")

    def check(self) -> list[Finding]:
        return rules.repositories(self.repositories) + rules.roles(self.roles)


@dataclass(frozen=True, kw_only=True)
class NodeServiceAccountArgs:
    """The spec, and the project that the account is in."""

    spec: NodeServiceAccountSpec
    project: str


class NodeServiceAccount(Component):
    """The account that nodes run as, instead of the project's default one, which may edit everything. Every pool names
    it: another account replaces all nodes."""

    TYPE = "accel:gcp:NodeServiceAccount"

    email: pulumi.Output[str]

    def __init__(self, name: str, args: NodeServiceAccountArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        account = gcp.serviceaccount.Account(name, project=args.project, display_name="GKE nodes", opts=self.child())
        roles = [NODE_ROLE, *([READER] if args.spec.read_project_registry else []), *args.spec.roles]
        granted = [project_role(self, name, args.project, role, account.member) for role in dict.fromkeys(roles)]
        granted += [
            repository_role(self, name, repository, account.member)
            for repository in dict.fromkeys(args.spec.repositories)
        ]
        # Users of the account wait for its roles: a node that starts without them never registers.
        self.email = once(account.email, *granted)
        self.finish()


def project_role(self: Component, name: str, project: str, role: str, member: pulumi.Output[str]) -> pulumi.Output[str]:
    """Grant a role in the project, and return the grant's id for resources that have to wait for it."""
    given = gcp.projects.IAMMember(
        f"{name}-{role.rpartition('/')[2].replace('.', '-')}",
        project=project,
        role=role,
        member=member,
        opts=self.child(),
    )
    return given.id


def custom_role(
    self: Component, name: str, project: str, role_id: str, title: str, permissions: Iterable[str]
) -> gcp.projects.IAMCustomRole:
    """Create a role with exactly these permissions; a test over all components compares them with Google's."""
    return gcp.projects.IAMCustomRole(
        name,
        project=project,
        # Google keeps the id of a deleted role for weeks, and the provider restores such a role.
        role_id=role_id.replace("-", "_")[:64],
        title=title[:100],
        permissions=sorted(permissions),
        opts=self.child(),
    )


def repository_role(self: Component, name: str, repository: str, member: pulumi.Output[str]) -> pulumi.Output[str]:
    """Allow an account to pull from a repository; return the grant's id."""
    _, project, _, location, _, short = repository.split("/")
    given = gcp.artifactregistry.RepositoryIamMember(
        f"{name}-{project}-{location}-{short}-reader",
        project=project,
        location=location,
        repository=short,
        role=READER,
        member=member,
        opts=self.child(),
    )
    return given.id


class WorkloadServiceAccountSpec(Spec):
    """Google resources that the pods of one Kubernetes service account may access."""

    namespace: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
    service_account: str = Field(
        pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$", description="Kubernetes service account in the namespace"
    )
    read_buckets: list[str] = Field(default_factory=list, description="Cloud Storage buckets that pods may read")
    write_buckets: list[str] = Field(
        default_factory=list, description="Cloud Storage buckets that pods may read and write"
    )
    secrets: list[str] = Field(
        default_factory=list, description="Ids of Secret Manager secrets of the project that pods may read"
    )
    repositories: list[str] = Field(
        default_factory=list, description="Repositories that pods may read: projects/<p>/locations/<l>/repositories/<r>"
    )
    roles: list[str] = Field(default_factory=list, description="Additional roles in the project")

    def check(self) -> list[Finding]:
        return rules.grants(self.repositories, self.roles, self.read_buckets, self.write_buckets)


@dataclass(frozen=True, kw_only=True)
class WorkloadServiceAccountArgs:
    """The spec, the project that the account is in, and the workload pool of the cluster: <project>.svc.id.goog."""

    spec: WorkloadServiceAccountSpec
    project: str
    workload_pool: pulumi.Input[str]


class WorkloadServiceAccount(Component):
    """A Google service account that pods use by workload identity, without a key. The Kubernetes service account
    carries its e-mail as annotation iam.gke.io/gcp-service-account. The workload pool belongs to the project, not to
    the cluster: pods of that name in every cluster of the project use the account. Source:
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/workload-identity"""

    TYPE = "accel:gcp:WorkloadServiceAccount"

    email: pulumi.Output[str]

    def __init__(self, name: str, args: WorkloadServiceAccountArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        account = gcp.serviceaccount.Account(
            name,
            project=args.project,
            display_name=f"pods of {spec.namespace}/{spec.service_account}"[:100],
            opts=self.child(),
        )
        gcp.serviceaccount.IAMMember(
            f"{name}-workload-identity",
            service_account_id=account.name,
            role="roles/iam.workloadIdentityUser",
            member=join("serviceAccount:", args.workload_pool, f"[{spec.namespace}/{spec.service_account}]"),
            opts=self.child(),
        )
        for role in dict.fromkeys(spec.roles):
            project_role(self, name, args.project, role, account.member)
        bucket_roles(self, name, spec.read_buckets, spec.write_buckets, account.member)
        secret_roles(self, name, args.project, spec.secrets, account.member)
        for repository in dict.fromkeys(spec.repositories):
            repository_role(self, name, repository, account.member)
        self.email = account.email
        self.finish()


def bucket_roles(
    self: Component, name: str, read: Sequence[str], write: Sequence[str], member: pulumi.Output[str]
) -> list[pulumi.Output[str]]:
    """Allow an account to read some buckets and write others, as mounting them requires; return the grants' ids.
    Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-setup"""
    by_role: dict[str, Sequence[str]] = {
        "objectViewer": [bucket for bucket in read if bucket not in write],
        "objectUser": write,
    }
    return [
        gcp.storage.BucketIAMMember(
            f"{name}-{bucket}-{role}", bucket=bucket, role=f"roles/storage.{role}", member=member, opts=self.child()
        ).id
        for role, buckets in by_role.items()
        for bucket in dict.fromkeys(buckets)
    ]


def secret_roles(
    self: Component, name: str, project: str, secrets: Sequence[str], member: pulumi.Output[str]
) -> list[pulumi.Output[str]]:
    """Allow an account to read secrets of the project; return the grants' ids."""
    return [
        gcp.secretmanager.SecretIamMember(
            f"{name}-secret-{secret}",
            project=project,
            secret_id=secret,
            role="roles/secretmanager.secretAccessor",
            member=member,
            opts=self.child(),
        ).id
        for secret in dict.fromkeys(secrets)
    ]
