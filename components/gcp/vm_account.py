"""The account that machines run as, instead of the project's default account, which may edit everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import accounts as rules

from ..base import Component, Spec, once
from ..sdk import gcp
from .service_accounts import READER, bucket_roles, project_role, repository_role, secret_roles

ROLES = ("roles/logging.logWriter", "roles/monitoring.metricWriter")


class VmAccountSpec(Spec):
    """Google resources that the code on machines may access."""

    read_buckets: list[str] = Field(default_factory=list, description="Cloud Storage buckets that may be read")
    write_buckets: list[str] = Field(
        default_factory=list, description="Cloud Storage buckets that may be read and written"
    )
    secrets: list[str] = Field(
        default_factory=list, description="Ids of Secret Manager secrets of the project that may be read"
    )
    repositories: list[str] = Field(
        default_factory=list,
        description="Image repositories that may be read: projects/<p>/locations/<l>/repositories/<r>. Default: all of "
        "the project",
    )
    roles: list[str] = Field(default_factory=list, description="Additional roles in the project")

    def check(self) -> list[Finding]:
        return rules.grants(self.repositories, self.roles, self.read_buckets, self.write_buckets)


@dataclass(frozen=True, kw_only=True)
class VmAccountArgs:
    """The spec, the project that the account is in, and the roles there that every account of the kind needs."""

    spec: VmAccountSpec
    project: str
    roles: Sequence[str] = ()


class VmAccount(Component):
    """An account with the named roles only. Machines carry its e-mail: another account replaces them."""

    TYPE = "accel:gcp:VmAccount"

    email: pulumi.Output[str]
    member: pulumi.Output[str]

    def __init__(self, name: str, args: VmAccountArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        account = gcp.serviceaccount.Account(name, project=args.project, display_name="machines", opts=self.child())
        roles = [*ROLES, *args.roles, *([] if spec.repositories else [READER]), *spec.roles]
        granted = [project_role(self, name, args.project, role, account.member) for role in dict.fromkeys(roles)]
        granted += [repository_role(self, name, one, account.member) for one in dict.fromkeys(spec.repositories)]
        granted += bucket_roles(self, name, spec.read_buckets, spec.write_buckets, account.member)
        granted += secret_roles(self, name, args.project, spec.secrets, account.member)
        # A machine that starts before its account has its roles never reports: users of the account wait for them.
        self.email = once(account.email, *granted)
        self.member = account.member
        self.finish()
