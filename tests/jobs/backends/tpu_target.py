"""A target of TPU VMs, and jobs for it."""

from typing import Any

from accel.contract.google_vms import TpuVmTarget
from jobs.backends.base import Request
from jobs.backends.vm.tpu.request import render
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key
from tests.jobs.backends import vm_target

ZONES = ["us-central1-a", "us-east5-b", "europe-west4-a", "us-central2-b"]


def make_target(**changes: Any) -> TpuVmTarget:
    """Four zones of four regions, one of which has v4 and nothing else."""
    return TpuVmTarget(**{**vm_target.values(ZONES, "tpu"), **changes})


def make_request(target: TpuVmTarget | None = None, text: str = "golden", **fields: Any) -> Request:
    """The request of a small job under the key of a text."""
    values: dict[str, Any] = {"name": "digits", "command": ["python3", "train.py"], **fields}
    values.setdefault("accelerator", {"type": "v5litepod-16"})
    job = Job(**values)
    key = submission_key(job.name, text)
    return render(job, platform_name(job.name, key), key, "tpus", target or make_target())
