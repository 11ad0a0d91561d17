"""A target of GPU VMs, and jobs for it."""

from typing import Any

from accel.contract.google_vms import GceTarget
from jobs.backends.base import Request
from jobs.backends.vm.gpu.request import render
from tests.jobs.backends import vm_target
from tests.jobs.backends.small_request import small_request

ZONES = ["us-central1-a", "us-central1-b", "us-east4-c", "europe-west4-b"]
IMAGE = "projects/deeplearning-platform-release/global/images/family/common-cu129-ubuntu-2404-nvidia-580"


def make_target(**changes: Any) -> GceTarget:
    """Four zones of three regions."""
    return GceTarget(**{**vm_target.values(ZONES, "gpu"), "image": IMAGE, "disk_gib": 100, **changes})


def make_request(target: GceTarget | None = None, text: str = "golden", **fields: Any) -> Request:
    """The request of a small job under the key of a text."""
    values: dict[str, Any] = {"accelerator": {"type": "l4"}, **fields}
    return small_request(render, "gpus", target or make_target(), text, **values)
