"""Installation of the NVIDIA driver on GKE nodes, by exactly one of GKE, a DaemonSet of the stack, and NVIDIA's
operator."""

from accel.diagnostics.findings import GKE, Finding, Rule

_GPUS = f"{GKE}how-to/gpus"

LATEST_UBUNTU = Rule(
    "gke.driver.latest-ubuntu",
    "reject",
    "The latest driver is for Container-Optimized OS; Ubuntu has the default one",
    "https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/GPUDriverInstallationConfig",
)
OPERATOR_COS = Rule(
    "gke.driver.operator-cos",
    "reject",
    "NVIDIA's operator installs drivers on Ubuntu only",
    "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/google-gke.html",
)
LABEL = Rule("gke.driver.label", "reject", "GKE's driver label says who installs; it follows from `driver`", _GPUS)
SHARED = Rule(
    "gke.driver.operator-sharing",
    "reject",
    "Sharing and partitions of GKE are made by its own device plugin, which is off beside NVIDIA's operator",
    "https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpu-operator",
)

SECURE_BOOT = Rule(
    "gke.driver.secure-boot",
    "warn",
    "With secure boot a kernel module that is not signed, such as one built on the node, does not load",
    f"{GKE}how-to/shielded-gke-nodes",
)

RULES = (LATEST_UBUNTU, OPERATOR_COS, LABEL, SHARED, SECURE_BOOT)

DISABLED = "INSTALLATION_DISABLED"
VERSIONS = {"default": "DEFAULT", "latest": "LATEST", "daemonset": DISABLED, "operator": DISABLED}
"""`gpuDriverVersion` for each driver. It is always set, since GKE's own default changed with 1.30.1-gke.1156000.
Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus"""

VERSION_LABEL = "cloud.google.com/gke-gpu-driver-version"
NO_PLUGIN_LABEL = "gke-no-default-nvidia-gpu-device-plugin"
"""Label that keeps GKE from running a device plugin on a node. Source:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpu-operator"""


def driver(
    name: str,
    image_type: str,
    *,
    labels: tuple[str, ...] = (),
    partition: str | None = None,
    sharing: str | None = None,
    secure_boot: bool = False,
    field: str = "driver",
) -> list[Finding]:
    """Check a driver (a key of VERSIONS) on a node image; `labels` are the keys of the user's node labels."""
    found: list[Finding] = []
    ubuntu = image_type.startswith("UBUNTU")
    if name == "latest" and ubuntu:
        message = f"is latest, and the nodes run {image_type}"
        found.append(LATEST_UBUNTU.finding(field, message, "use default, or image_type COS_CONTAINERD"))
    if name == "operator" and not ubuntu:
        message = f"is operator, and the nodes run {image_type}"
        found.append(OPERATOR_COS.finding(field, message, "use image_type UBUNTU_CONTAINERD, or default"))
    if name == "operator" and (partition or sharing):
        what = "mig_partition" if partition else "sharing"
        message = f"is operator, and {what} is GKE's to make"
        found.append(SHARED.finding(field, message, f"use default, or leave out {what} and set it up in the operator"))
    if secure_boot and ubuntu:
        message = f"is true, and driver {name} on {image_type} may load modules that are not signed"
        found.append(SECURE_BOOT.finding("secure_boot", message, "write secure_boot: false, or use COS_CONTAINERD"))
    for key in (VERSION_LABEL, NO_PLUGIN_LABEL):
        if key in labels:
            message = f"is {name}, and {key} among labels says another thing, or the same twice"
            found.append(LABEL.finding(f"labels.{key}", message, "leave the label out"))
    return found
