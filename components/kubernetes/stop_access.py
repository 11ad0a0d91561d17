"""Access for the function that stops a stack to the stop policy of Kueue's queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pydantic import Field

from ..base import Component, Spec
from ..sdk import meta, rbac


class StopAccessSpec(Spec):
    """The queues."""

    queues: list[str] = Field(min_length=1, description="Names of the ClusterQueues")


@dataclass(frozen=True, kw_only=True)
class StopAccessArgs:
    """The spec, and the e-mail of the function's account, by which GKE knows it. Source:
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control"""

    spec: StopAccessSpec
    email: pulumi.Input[str]


class StopAccess(Component):
    """A role on these queues only, and its binding."""

    TYPE = "accel:kubernetes:StopAccess"

    role: pulumi.Output[str]

    def __init__(self, name: str, args: StopAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        own = f"accel-{name}"
        role = rbac.v1.ClusterRole(
            name, metadata=meta.ObjectMetaArgs(name=own), rules=[_rule(args.spec.queues)], opts=self.child()
        )
        rbac.v1.ClusterRoleBinding(
            name,
            metadata=meta.ObjectMetaArgs(name=own),
            role_ref=rbac.v1.RoleRefArgs(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=own),
            subjects=[rbac.v1.SubjectArgs(api_group="rbac.authorization.k8s.io", kind="User", name=args.email)],
            opts=self.child(depends_on=[role]),
        )
        self.role = pulumi.Output.from_input(own)
        self.finish()


def _rule(queues: Sequence[str]) -> rbac.v1.PolicyRuleArgs:
    return rbac.v1.PolicyRuleArgs(
        api_groups=["kueue.x-k8s.io"], resources=["clusterqueues"], resource_names=list(queues), verbs=["get", "patch"]
    )
