"""A DaemonSet that takes nodes with a faulty GPU out of use: it reads the kernel's log and cordons its own node."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pulumi
from pydantic import Field

from accel.catalog.xids import cordoning, xids

from ..base import Component, Spec
from ..sdk import apps, core, meta, rbac
from .pools import gpu_nodes, host_volume, mount

NAMESPACE = "kube-system"  # where GKE lets pods be critical to their node
PYTHON = "docker.io/library/python:3.12-slim@sha256:57cd7c3a7a273101a6485ba99423ee568157882804b1124b4dd04266317710de"

_SCRIPT, _NUMBERS, _FOLDER = "cordon.py", "xids", "/etc/accel"


class GpuHealthSpec(Spec):
    """The errors that take a node out of use, and whether they do."""

    xids: list[int] = Field(
        default_factory=cordoning,
        min_length=1,
        description="XID errors after which a node accepts no new pods. Default: those for which NVIDIA recommends "
        "a reset",
    )
    cordon: bool = Field(
        default=True, description="Cordon the node; false: only write the error on it (annotation accel/xid)"
    )
    image: str = Field(default=PYTHON, description="Container image with Python 3.11 or newer")


class GpuHealth(Component):
    """A DaemonSet that cordons a GPU node on a serious driver error. Running pods go on, and no new pod comes. The list
    lies in a ConfigMap, and a change of it takes effect without a restart. GKE's own device plugin marks a GPU
    unhealthy after XID 48 only. The account may change any node, since RBAC knows no "own node"."""

    TYPE = "accel:kubernetes:GpuHealth"

    xids: pulumi.Output[list[int]]

    def __init__(self, name: str, spec: GpuHealthSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        script = Path(__file__).with_name(_SCRIPT).read_text(encoding="utf-8")
        config = core.ConfigMap(
            f"{name}-config",
            metadata=meta.ObjectMetaArgs(name=f"accel-{name}", namespace=NAMESPACE),
            data={_SCRIPT: script, _NUMBERS: _list(spec.xids)},
            opts=self.child(),
        )
        account = system_account(
            self, name, [rbac.v1.PolicyRuleArgs(api_groups=[""], resources=["nodes"], verbs=["get", "patch"])]
        )
        # Without its account's rights a node would retry for ever, and without its files a pod does not start.
        apps.v1.DaemonSet(
            name,
            metadata=meta.ObjectMetaArgs(name=f"accel-{name}", namespace=NAMESPACE),
            spec=apps.v1.DaemonSetSpecArgs(
                selector=meta.LabelSelectorArgs(match_labels={"app": f"accel-{name}"}),
                template=core.PodTemplateSpecArgs(
                    metadata=meta.ObjectMetaArgs(
                        labels={"app": f"accel-{name}"},
                        # A new script restarts the pods; a new list need not.
                        annotations={"accel/script": hashlib.sha256(script.encode()).hexdigest()[:12]},
                    ),
                    spec=_pod(f"accel-{name}", spec),
                ),
            ),
            opts=self.child(depends_on=[config, account]),
        )
        self.xids = pulumi.Output.from_input(spec.xids)
        self.finish()


def system_account(component: Component, name: str, rules: Sequence[rbac.v1.PolicyRuleArgs]) -> pulumi.Resource:
    """Create an account in NAMESPACE with a cluster role of these rules; return the binding of both."""
    own = f"accel-{name}"
    account = core.ServiceAccount(
        f"{name}-account", metadata=meta.ObjectMetaArgs(name=own, namespace=NAMESPACE), opts=component.child()
    )
    role = rbac.v1.ClusterRole(
        f"{name}-role", metadata=meta.ObjectMetaArgs(name=own), rules=rules, opts=component.child()
    )
    return rbac.v1.ClusterRoleBinding(
        f"{name}-binding",
        metadata=meta.ObjectMetaArgs(name=own),
        role_ref=rbac.v1.RoleRefArgs(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=own),
        subjects=[rbac.v1.SubjectArgs(kind="ServiceAccount", name=own, namespace=NAMESPACE)],
        opts=component.child(depends_on=[account, role]),
    )


def _list(numbers: list[int]) -> str:
    known = xids()
    lines = [f"{number} # {known[number].what}" if number in known else str(number) for number in sorted(set(numbers))]
    return "\n".join(lines) + "\n"


def _pod(own: str, spec: GpuHealthSpec) -> core.PodSpecArgs:
    return core.PodSpecArgs(
        service_account_name=own,
        priority_class_name="system-node-critical",
        affinity=gpu_nodes(),
        tolerations=[core.TolerationArgs(operator="Exists")],
        volumes=[
            core.VolumeArgs(name="files", config_map=core.ConfigMapVolumeSourceArgs(name=own)),
            host_volume("kmsg", "/dev/kmsg", "CharDevice"),
        ],
        containers=[
            core.ContainerArgs(
                name="health",
                image=spec.image,
                command=["python3", "-u", f"{_FOLDER}/{_SCRIPT}"],
                env=[
                    core.EnvVarArgs(
                        name="NODE_NAME",
                        value_from=core.EnvVarSourceArgs(
                            field_ref=core.ObjectFieldSelectorArgs(field_path="spec.nodeName")
                        ),
                    ),
                    core.EnvVarArgs(name="XIDS", value=f"{_FOLDER}/{_NUMBERS}"),
                    core.EnvVarArgs(name="CORDON", value="yes" if spec.cordon else "no"),
                ],
                resources=core.ResourceRequirementsArgs(
                    requests={"cpu": "10m", "memory": "32Mi"}, limits={"memory": "64Mi"}
                ),
                # The device cgroup keeps the kernel's log from every container that is not privileged.
                security_context=core.SecurityContextArgs(privileged=True, read_only_root_filesystem=True),
                volume_mounts=[mount("files", _FOLDER, read_only=True), mount("kmsg", "/dev/kmsg", read_only=True)],
            )
        ],
    )
