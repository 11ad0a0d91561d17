"""Drivers installed by the stack's DaemonSet, and the job that tests one."""

from accel.catalog import nearest
from accel.catalog.gke import partitioner_since
from accel.diagnostics.findings import Finding, did_you_mean
from accel.rules.table import rule

VERSION = rule("gke.driver-installer.version")
PROBED_GPU = rule("gke.driver-probe.gpu")
PROBED_QUEUED = rule("gke.driver-probe.queued")

PARTITION = rule("gke.driver-installer.partition")

PARTITIONER = (
    "gcr.io/gke-release/nvidia-partition-gpu@sha256:de12f85ebfb4fb6c1893cd30c23aab662a72fa0448f97ef74fccb82d7522ef17"
)
PARTITIONER_DAY = "2025-04-02"
"""Date of the newest image in any of Google's manifests: daemonset-preloaded.yaml of
https://github.com/GoogleCloudPlatform/container-engine-accelerators at 4da5c07. https://github.com/NVIDIA/aicr runs it
on GB200, whose profiles were added to the source on 2025-03-20. The image was not pulled: these dates only imply that
it knows what the source knew."""

UBUNTU_DRIVERS = {"R570": "570.86.15", "R580": "580.65.06"}
"""Driver of each of Google's DaemonSets for Ubuntu; `default` names none and uses that of the image.
https://github.com/GoogleCloudPlatform/container-engine-accelerators/tree/master/nvidia-driver-installer/ubuntu
(daemonset-preloaded-R570.yaml at 1d9135e, daemonset-preloaded-R580.yaml at e411992, both of 2025)"""

VERSIONS = {"cos": ("default", "latest"), "ubuntu": ("default", *UBUNTU_DRIVERS)}
"""Versions that each installer supports. COS also accepts full versions, which its images drop without notice."""


def installer(node_image: str, version: str) -> list[Finding]:
    known = VERSIONS[node_image]
    if version in known:
        return []
    fix = did_you_mean(nearest(version, known, 1), known)
    return [VERSION.finding("version", f'is "{version}", which the installer for {node_image} does not know', fix)]


def partition(profile: str, accelerator: str, field: str = "mig_partition") -> list[Finding]:
    """Check a profile of a GPU (a key of the catalogue) on nodes whose driver the DaemonSet installs."""
    if partitioner_since(accelerator, profile) <= PARTITIONER_DAY:
        return []
    message = f"is {profile} of {accelerator}, which the DaemonSet's partitioner of {PARTITIONER_DAY} does not know"
    return [PARTITION.finding(field, message, "write driver: latest, with which GKE's own makes it")]


def probe(pool: str, *, gpus: int, queued: bool, field: str) -> list[Finding]:
    """Check a pool for a one-GPU job that tests the driver; `gpus` are those that a node offers."""
    found: list[Finding] = []
    if not gpus:
        found.append(PROBED_GPU.finding(field, f"is {pool}, whose nodes have no GPU", "leave it out"))
    if queued:
        message = f"is {pool}, whose nodes come by ProvisioningRequest only"
        found.append(PROBED_QUEUED.finding(field, message, "try the driver on another pool of the same machine"))
    return found
