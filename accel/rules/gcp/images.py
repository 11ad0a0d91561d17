"""Boot images of GPU VMs: families of Google's Deep Learning VM images, and driver installation."""

import re
from datetime import date

from accel.catalog import machine
from accel.catalog.gcp_images import CURRENT, CURRENT_BASE, DEEP_LEARNING, families
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

OLD_NAME = rule("gcp.image.old-name")
TENSORFLOW = rule("gcp.image.tensorflow")
PATCHED = rule("gcp.image.patched")
GONE = rule("gcp.image.gone")
UNKNOWN = rule("gcp.image.unknown")
DRIVER = rule("gcp.image.driver")
ARCHITECTURE = rule("gcp.image.architecture")

UBUNTU = ("ubuntu-os-cloud",)
"""Projects of plain Ubuntu images, on which Google's installer works."""

BUILT_IN = ("ubuntu-os-accelerator-images",)
"""Projects whose images include the driver. Source:
https://docs.cloud.google.com/compute/docs/images/os-details#ubuntu_accelerator_images"""

_OLD = re.compile(r"pytorch-latest-(gpu|cu\d+).*")
_TENSORFLOW = re.compile(r"(tf|tf2|tensorflow)-.*")


def family(name: str, project: str, *, today: date, field: str = "image_family") -> list[Finding]:
    """Check a family on a day. Those of other projects are up to their owner."""
    if project != DEEP_LEARNING:
        return []
    if _OLD.fullmatch(name):
        return [OLD_NAME.finding(field, f'is "{name}", which does not exist any more', f"use {CURRENT}", CURRENT)]
    if _TENSORFLOW.fullmatch(name):
        fix = f"use {CURRENT_BASE} and install TensorFlow, or run a container"
        return [TENSORFLOW.finding(field, f'is "{name}"', fix)]
    found = families().get(name)
    if found is None:
        message = f'is "{name}", which is not in the table of image families'
        return [UNKNOWN.finding(field, message, f"use {CURRENT}, or make sure that it exists")]
    if found.available_until and today > found.available_until:
        return [GONE.finding(field, f"is {name}, which was available until {found.available_until}", f"use {CURRENT}")]
    if found.patched_until and today > found.patched_until:
        return [PATCHED.finding(field, f"is {name}, which was patched until {found.patched_until}", f"use {CURRENT}")]
    return []


def driver(project: str, *, install: bool, field: str = "image_project") -> list[Finding]:
    if not install or project in (DEEP_LEARNING, *BUILT_IN):
        return []
    if project in UBUNTU:
        message = f"is {project}, so the startup script installs the driver, and again at each boot without one"
        return [DRIVER.finding(field, message, f"use {DEEP_LEARNING} for a driver that Google tests with the image")]
    message = f"is {project}, on whose images nothing here installs the driver"
    return [DRIVER.finding(field, message, "write install_driver: false if the image has one")]


def architecture(project: str, machine_type: str, field: str = "image_family") -> list[Finding]:
    """Check for x86, the CPU of the listed Deep Learning VM images."""
    if project != DEEP_LEARNING or machine("gcp", machine_type).cpu_arch == "x86_64":
        return []
    message = f"is of x86, and {machine_type} is an Arm machine"
    fix = "use ubuntu-accelerator-2404-arm64-with-nvidia-580 of image_project ubuntu-os-accelerator-images"
    return [ARCHITECTURE.finding(field, message, fix)]
