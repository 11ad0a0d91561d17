"""The DaemonSet that installs NVIDIA's driver on pools whose driver GKE leaves alone (INSTALLATION_DISABLED). GKE runs
its own device plugin on every GPU node of a Standard cluster, Ubuntu included, so this module has none. A node opts out
only by the label gke-no-default-nvidia-gpu-device-plugin, for NVIDIA's operator (operator.py).
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus#installing_drivers"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gke import drivers_daemonset as rules

from ..base import Component, Spec
from ..sdk import apps, core, meta
from .pools import ACCELERATOR, NODE_POOL, expression, host_volume, mount, node_terms

NAMESPACE = "kube-system"
DRIVER_VERSION = "cloud.google.com/gke-gpu-driver-version"
CONFIDENTIAL = "cloud.google.com/gke-confidential-nodes-instance-type"

PAUSE = "gke.gcr.io/pause:3.8@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"
"""The image that Google's installers pin: daemonset-preloaded-R580.yaml of
https://github.com/GoogleCloudPlatform/container-engine-accelerators at e411992, and the list of images of
https://github.com/NVIDIA/aicr (2026)."""

_HOST, _WITHIN = "/home/kubernetes/bin/nvidia", "/usr/local/nvidia"
_INSTALL = """\
if lsmod | grep -q '^nvidia'; then
  echo "a driver is loaded: kept, whatever its version"
  exit 0
fi
/cos-gpu-installer install --version={version} || exit 1
chmod 755 /root/home/kubernetes/bin/nvidia
"""


class DriverInstallerSpec(Spec):
    """A driver for nodes with a given image. Another version reaches a node only when the node is replaced."""

    node_image: Literal["cos", "ubuntu"] = "cos"
    version: str = Field(
        default="default",
        description="Driver version; cos: default or latest of the image; ubuntu: default, or a branch such as R580",
    )

    def check(self) -> list[Finding]:
        return rules.installer(self.node_image, self.version)

    @property
    def object_name(self) -> str:
        """Return the DaemonSet's name: Google's own for the newest driver on COS, so that its tools find it."""
        if (self.node_image, self.version) == ("cos", "latest"):
            return "nvidia-driver-installer"
        return f"nvidia-driver-installer-{self.node_image}-{self.version.lower()}"


@dataclass(frozen=True, kw_only=True)
class DriverInstallerArgs:
    """The spec, and the physical names of the pools that need this driver; at least one."""

    spec: DriverInstallerSpec
    pool_names: Sequence[pulumi.Input[str]]


class DriverInstaller(Component):
    """A DaemonSet that installs a driver on every node of some pools. One per node image and version of a cluster."""

    TYPE = "accel:kubernetes:DriverInstaller"

    daemon_set: pulumi.Output[str]

    def __init__(self, name: str, args: DriverInstallerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        if not args.pool_names:
            raise ValueError("pool_names: is empty; name the pools that this driver is for")
        super().__init__(name, args.spec, opts)
        spec = args.spec
        labels = {"name": spec.object_name, "k8s-app": "nvidia-driver-installer"}
        apps.v1.DaemonSet(
            name,
            metadata=meta.ObjectMetaArgs(
                name=spec.object_name, namespace=NAMESPACE, labels={"k8s-app": "nvidia-driver-installer"}
            ),
            spec=apps.v1.DaemonSetSpecArgs(
                selector=meta.LabelSelectorArgs(match_labels=labels),
                update_strategy=apps.v1.DaemonSetUpdateStrategyArgs(type="RollingUpdate"),
                template=core.PodTemplateSpecArgs(
                    metadata=meta.ObjectMetaArgs(labels=labels), spec=_pod(spec, args.pool_names)
                ),
            ),
            opts=self.child(),
        )
        self.daemon_set = pulumi.Output.from_input(f"{NAMESPACE}/{spec.object_name}")
        self.finish()


def _pod(spec: DriverInstallerSpec, pool_names: Sequence[pulumi.Input[str]]) -> core.PodSpecArgs:
    cos = spec.node_image == "cos"
    return core.PodSpecArgs(
        priority_class_name="system-node-critical",
        affinity=_affinity(pool_names),
        tolerations=[core.TolerationArgs(operator="Exists")],
        host_network=True if cos else None,
        host_pid=True if cos else None,
        volumes=[host_volume(*one) for one in (_COS_VOLUMES if cos else _UBUNTU_VOLUMES).items()],
        init_containers=[_cos_installer(spec.version), _partitioner()] if cos else [_ubuntu_installer(spec.version)],
        containers=[core.ContainerArgs(name="pause", image=PAUSE)],
    )


def _affinity(pool_names: Sequence[pulumi.Input[str]]) -> core.AffinityArgs:
    """Select the named pools, but no node with GKE's driver, nor a confidential one, which has its own installer. GKE
    sets no driver-version label where it installs nothing, or sets `disabled`: Google's installers look for both."""
    own = [
        expression(NODE_POOL, "In", list(pool_names)),
        expression(ACCELERATOR, "Exists"),
        expression(CONFIDENTIAL, "DoesNotExist"),
    ]
    return node_terms(
        [
            [*own, expression(DRIVER_VERSION, "DoesNotExist")],
            [*own, expression(DRIVER_VERSION, "In", ["disabled"])],
        ]
    )


_COS_VOLUMES = {
    "dev": "/dev",
    "vulkan-icd-mount": f"{_HOST}/vulkan/icd.d",
    "nvidia-install-dir-host": _HOST,
    "root-mount": "/",
    "cos-tools": "/var/lib/cos-tools",
    "nvidia-config": "/etc/nvidia",
}
_UBUNTU_VOLUMES = {"dev": "/dev", "boot": "/boot", "root-mount": "/"}

_COS_ENVIRONMENT = {
    "NVIDIA_INSTALL_DIR_HOST": _HOST,
    "NVIDIA_INSTALL_DIR_CONTAINER": _WITHIN,
    "VULKAN_ICD_DIR_HOST": f"{_HOST}/vulkan/icd.d",
    "VULKAN_ICD_DIR_CONTAINER": "/etc/vulkan/icd.d",
    "ROOT_MOUNT_DIR": "/root",
    "COS_TOOLS_DIR_HOST": "/var/lib/cos-tools",
    "COS_TOOLS_DIR_CONTAINER": "/build/cos-tools",
}


def _privileged(name: str, image: str, mounts: Mapping[str, str], **rest: Any) -> core.ContainerArgs:
    """`mounts`: path by volume."""
    return core.ContainerArgs(
        name=name,
        image=image,
        resources=core.ResourceRequirementsArgs(requests={"cpu": "150m"}),
        security_context=core.SecurityContextArgs(privileged=True),
        volume_mounts=[mount(volume, path) for volume, path in mounts.items()],
        **rest,
    )


def _partitioner() -> core.ContainerArgs:
    """Create the partitions (MIG) of a pool that requests them; do nothing for any other."""
    return _privileged(
        "partition-gpus",
        rules.PARTITIONER,
        {"nvidia-install-dir-host": _WITHIN, "dev": "/dev", "nvidia-config": "/etc/nvidia"},
        env=[core.EnvVarArgs(name="LD_LIBRARY_PATH", value=f"{_WITHIN}/lib64")],
    )


def _cos_installer(version: str) -> core.ContainerArgs:
    return _privileged(
        "nvidia-driver-installer",
        "cos-nvidia-installer:fixed",
        {
            "nvidia-install-dir-host": _WITHIN,
            "vulkan-icd-mount": "/etc/vulkan/icd.d",
            "dev": "/dev",
            "root-mount": "/root",
            "cos-tools": "/build/cos-tools",
        },
        # Not on a registry: each COS image contains the installer for its kernel.
        image_pull_policy="Never",
        command=["bash", "-c", _INSTALL.format(version=version)],
        env=[core.EnvVarArgs(name=key, value=value) for key, value in _COS_ENVIRONMENT.items()],
    )


def _ubuntu_installer(version: str) -> core.ContainerArgs:
    number = rules.UBUNTU_DRIVERS.get(version)
    return _privileged(
        "nvidia-driver-installer",
        "gke-nvidia-installer:fixed",
        {"boot": "/boot", "dev": "/dev", "root-mount": "/root"},
        image_pull_policy="Never",
        env=[core.EnvVarArgs(name="NVIDIA_DRIVER_VERSION", value=number)] if number else None,
    )
