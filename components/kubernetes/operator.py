"""The namespace that NVIDIA's GPU Operator needs on GKE. Its users install the operator itself as a Helm chart."""

from __future__ import annotations

from typing import Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gke import drivers, names

from ..base import Component, Spec
from ..sdk import core, meta

CRITICAL = ["system-node-critical", "system-cluster-critical"]


class OperatorNamespaceSpec(Spec):
    """The operator's namespace, and the node image that its driver is for.

    Its users add the chart (`helm install --namespace <namespace> nvidia/gpu-operator`), and node pools with
    INSTALLATION_DISABLED and the label gke-no-default-nvidia-gpu-device-plugin=true.
    https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/google-gke.html
    """

    namespace: str = "gpu-operator"
    node_image: Literal["cos", "ubuntu"] = "ubuntu"
    max_pods: int = Field(
        default=100, ge=1, description="Maximum number of critical pods in the namespace; each GPU node needs about ten"
    )

    def check(self) -> list[Finding]:
        image_type = f"{self.node_image}_CONTAINERD".upper()
        found = drivers.driver("operator", image_type, field="node_image")
        return [*found, *names.label(self.namespace, "namespace")]


class OperatorNamespace(Component):
    """A namespace whose pods may be critical to their nodes, which GKE permits only with a quota for it."""

    TYPE = "accel:kubernetes:OperatorNamespace"

    namespace: pulumi.Output[str]

    def __init__(self, name: str, spec: OperatorNamespaceSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        namespace = core.Namespace(
            name,
            metadata=meta.ObjectMetaArgs(
                name=spec.namespace, labels={"pod-security.kubernetes.io/enforce": "privileged"}
            ),
            opts=self.child(),
        )
        core.ResourceQuota(
            f"{name}-quota",
            metadata=meta.ObjectMetaArgs(namespace=spec.namespace),
            spec=core.ResourceQuotaSpecArgs(
                hard={"pods": str(spec.max_pods)},
                scope_selector=core.ScopeSelectorArgs(
                    match_expressions=[
                        core.ScopedResourceSelectorRequirementArgs(
                            scope_name="PriorityClass", operator="In", values=CRITICAL
                        )
                    ]
                ),
            ),
            # Named by a constant, which the engine cannot follow.
            opts=self.child(depends_on=[namespace]),
        )
        self.namespace = pulumi.Output.from_input(spec.namespace)
        self.finish()
