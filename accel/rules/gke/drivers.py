"""Installation of the NVIDIA driver on GKE nodes, by exactly one of GKE, a DaemonSet of the stack, NVIDIA's
operator."""

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

LATEST_UBUNTU = rule("gke.driver.latest-ubuntu")
OPERATOR_COS = rule("gke.driver.operator-cos")
LABEL = rule("gke.driver.label")
SHARED = rule("gke.driver.operator-sharing")

SECURE_BOOT = rule("gke.driver.secure-boot")

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
    """Check a key of VERSIONS on a node image. `labels` are the keys of the user's node labels."""
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
