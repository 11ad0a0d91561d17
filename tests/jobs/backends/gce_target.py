"""A target of GPU VMs, and jobs for it."""

from typing import Any

from accel.contract.google_vms import GceTarget
from jobs.backends.base import Request
from jobs.backends.vm.gpu.request import render
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key
from tests.jobs.backends import vm_target

ZONES = ["us-central1-a", "us-central1-b", "us-east4-c", "europe-west4-b"]
IMAGE = "projects/deeplearning-platform-release/global/images/family/common-cu129-ubuntu-2404-nvidia-580"


def make_target(**changes: Any) -> GceTarget:
    """Four zones of three regions."""
    return GceTarget(**{**vm_target.values(ZONES, "gpu"), "image": IMAGE, "disk_gib": 100, **changes})


def make_request(target: GceTarget | None = None, text: str = "golden", **fields: Any) -> Request:
    """The request of a small job under the key of a text."""
    values: dict[str, Any] = {"name": "digits", "command": ["python3", "train.py"], **fields}
    values.setdefault("accelerator", {"type": "l4"})
    job = Job(**values)
    key = submission_key(job.name, text)
    return render(job, platform_name(job.name, key), key, "gpus", target or make_target())
