"""A namespace for jobs: its pod security, the account of its pods, and its quota."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import pulumi
from pydantic import Field, model_validator

from accel.contract.gke import PodSecurity
from accel.diagnostics.faults import several
from accel.diagnostics.findings import Finding
from accel.rules.gke import names

from ..base import Component, Spec
from ..sdk import core, meta, networking

_SECURITY = "pod-security.kubernetes.io"
_IDENTITY = "iam.gke.io/gcp-service-account"


class JobNamespaceSpec(Spec):
    """A namespace. Deleting it deletes every job, claim and queue in it."""

    namespace: str
    pod_security: PodSecurity = Field(
        default="restricted",
        description="Pod Security Standard, which limits what pods may request of their node; restricted: they "
        "cannot run as root; baseline: they can: "
        "https://kubernetes.io/docs/concepts/security/pod-security-standards/",
    )
    service_account: str = Field(default="jobs", description="Kubernetes service account that jobs run as")
    quota: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Maximum total of each resource, such as requests.nvidia.com/gpu: '16'; every pod then has to "
        "request it",
    )
    network: Literal["open", "own-namespace"] = Field(
        default="own-namespace",
        description="Who may connect to the namespace's pods; own-namespace: only its own pods; open: whoever can "
        "reach them",
    )
    protect: bool = Field(default=False, description="Refuse to delete the namespace")

    def check(self) -> list[Finding]:
        return [
            *names.label(self.namespace, "namespace"),
            *names.subdomain(self.service_account, "service_account"),
        ]

    @model_validator(mode="after")
    def _own_account(self) -> Self:
        if self.service_account == "default":
            message = "is default, which Kubernetes makes itself; write another name, such as jobs"
            raise several([("service_account", message)])
        return self


@dataclass(frozen=True, kw_only=True)
class JobNamespaceArgs:
    """The spec, and the e-mail of the Google account that the Kubernetes account maps to (workload identity)."""

    spec: JobNamespaceSpec
    google_account: pulumi.Input[str] | None = None


class JobNamespace(Component):
    """A namespace with an account for jobs."""

    TYPE = "accel:kubernetes:JobNamespace"

    namespace: pulumi.Output[str]
    service_account: pulumi.Output[str]

    def __init__(self, name: str, args: JobNamespaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        namespace = core.Namespace(
            name,
            metadata=meta.ObjectMetaArgs(
                name=spec.namespace,
                labels={f"{_SECURITY}/enforce": spec.pod_security, f"{_SECURITY}/warn": spec.pod_security},
            ),
            opts=self.child(protect=spec.protect),
        )
        # Objects of a namespace cannot be created before it, and name it by a constant that the engine cannot follow.
        within = self.child(depends_on=[namespace])
        account = core.ServiceAccount(
            f"{name}-account",
            metadata=meta.ObjectMetaArgs(
                namespace=spec.namespace,
                name=spec.service_account,
                annotations={_IDENTITY: args.google_account} if args.google_account is not None else None,
            ),
            opts=within,
        )
        if spec.quota:
            core.ResourceQuota(
                f"{name}-quota",
                metadata=meta.ObjectMetaArgs(namespace=spec.namespace),
                spec=core.ResourceQuotaSpecArgs(hard=spec.quota),
                opts=within,
            )
        if spec.network == "own-namespace":
            _own_namespace(f"{name}-network", spec.namespace, within)
        self.namespace = pulumi.Output.all(namespace.id).apply(lambda _: spec.namespace)
        self.service_account = pulumi.Output.all(account.id).apply(lambda _: spec.service_account)
        self.finish()


def _own_namespace(name: str, namespace: str, opts: pulumi.ResourceOptions) -> None:
    """Allow ingress only from pods of the same namespace, which the pods of one job need, and from the node, which no
    policy keeps out. Egress, DNS included, stays open. Source:
    https://kubernetes.io/docs/concepts/services-networking/network-policies/"""
    networking.v1.NetworkPolicy(
        name,
        metadata=meta.ObjectMetaArgs(namespace=namespace),
        spec=networking.v1.NetworkPolicySpecArgs(
            pod_selector=meta.LabelSelectorArgs(),
            policy_types=["Ingress"],
            ingress=[
                networking.v1.NetworkPolicyIngressRuleArgs(
                    from_=[networking.v1.NetworkPolicyPeerArgs(pod_selector=meta.LabelSelectorArgs())]
                )
            ],
        ),
        opts=opts,
    )
