"""A target of TPU VMs, and jobs for it."""

from typing import Any

from accel.contract.google_vms import TpuVmTarget
from jobs.backends.base import Request
from jobs.backends.vm.tpu.request import render
from tests.jobs.backends import vm_target
from tests.jobs.backends.small_request import small_request

ZONES = ["us-central1-a", "us-east5-b", "europe-west4-a", "us-central2-b"]


def make_target(**changes: Any) -> TpuVmTarget:
    """Four zones of four regions, one of which has v4 and nothing else."""
    return TpuVmTarget(**{**vm_target.values(ZONES, "tpu"), **changes})


def make_request(target: TpuVmTarget | None = None, text: str = "golden", **fields: Any) -> Request:
    """The request of a small job under the key of a text."""
    values: dict[str, Any] = {"accelerator": {"type": "v5litepod-16"}, **fields}
    return small_request(render, "tpus", target or make_target(), text, **values)
