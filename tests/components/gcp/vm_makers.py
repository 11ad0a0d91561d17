"""One maker for each component of TPU VMs and GPU VMs, for tests and laws."""

from collections.abc import Callable, Sequence
from typing import Any

import pulumi

from components.base import Component
from components.gcp.gpu_vm import GpuVm, GpuVmArgs
from components.gcp.gpu_vm_group import GpuVmGroup, GpuVmGroupArgs, GpuVmGroupSpec
from components.gcp.gpu_vm_spec import GpuVmSpec
from components.gcp.queued_tpu import QueuedTpu, QueuedTpuArgs, QueuedTpuSpec
from components.gcp.reconcile_function import ReconcileFunction, ReconcileFunctionArgs, ReconcileSpec
from components.gcp.tpu_queue import TpuQueue, TpuQueueArgs, TpuQueueSpec
from components.gcp.tpu_vm import TpuVm, TpuVmArgs, TpuVmSpec
from components.gcp.vm_account import VmAccount, VmAccountArgs, VmAccountSpec
from components.gcp.vm_jobs import BucketTargets, BucketTargetsArgs, BucketTargetsSpec, VmJobs, VmJobsArgs, VmJobsSpec
from tests.support.gcp import PROJECT

ACCOUNT = f"vms@{PROJECT}.iam.gserviceaccount.com"


def wired() -> dict[str, Any]:
    return {
        "project": PROJECT,
        "network": pulumi.Output.from_input(f"projects/{PROJECT}/global/networks/n"),
        "subnetwork": pulumi.Output.from_input(f"projects/{PROJECT}/regions/us-central1/subnetworks/s"),
    }


def account() -> pulumi.Output[str]:
    return pulumi.Output.from_input(ACCOUNT)


def tpu_spec(**values: object) -> TpuVmSpec:
    return TpuVmSpec.model_validate({"zone": "us-central1-a", "accelerator_type": "v5litepod-8", **values})


def queue_spec(**values: object) -> TpuQueueSpec:
    return TpuQueueSpec.model_validate({"zone": "us-central1-a", "accelerator_type": "v5litepod-16", **values})


def gpu_spec(**values: object) -> GpuVmSpec:
    return GpuVmSpec.model_validate({"zone": "us-central1-a", "machine_type": "a2-highgpu-4g", **values})


def group_spec(**values: object) -> GpuVmGroupSpec:
    given = {"zone": "us-central1-a", "machine_type": "a2-highgpu-8g", "size": 2, **values}
    return GpuVmGroupSpec.model_validate(given)


def tpu_vm(name: str, **values: object) -> TpuVm:
    return TpuVm(name, TpuVmArgs(spec=tpu_spec(**values), service_account=account(), **wired()))


def tpu_queue(name: str, **values: object) -> TpuQueue:
    return TpuQueue(name, TpuQueueArgs(spec=queue_spec(**values), hooks=None, **wired()))


def queued_spec(**values: object) -> QueuedTpuSpec:
    return QueuedTpuSpec.model_validate({"zone": "us-central1-a", "accelerator_type": "v5litepod-16", **values})


def queued_tpu(name: str, **values: object) -> QueuedTpu:
    args = QueuedTpuArgs(
        spec=queued_spec(**values),
        service_account=account(),
        bucket=pulumi.Output.from_input("records"),
        stack_labels={"accel-stack": "prod"},
        hooks=None,
        **wired(),
    )
    return QueuedTpu(name, args)


def reconcile_function(name: str, **values: object) -> ReconcileFunction:
    args = ReconcileFunctionArgs(
        spec=ReconcileSpec.model_validate(values),
        project=PROJECT,
        region="us-central1",
        bucket=pulumi.Output.from_input("records"),
        files={"main.py": "reconcile = print"},
        environment={"BUCKET": "records"},
        runs_as={"jobs": account()},
    )
    return ReconcileFunction(name, args)


def gpu_vm(name: str, **values: object) -> GpuVm:
    return GpuVm(name, GpuVmArgs(spec=gpu_spec(**values), service_account=account(), **wired()))


def gpu_vm_group(name: str, **values: object) -> GpuVmGroup:
    return GpuVmGroup(name, GpuVmGroupArgs(spec=group_spec(**values), service_account=account(), **wired()))


def vm_account(name: str, **values: object) -> VmAccount:
    given = {"read_buckets": ["data"], "write_buckets": ["models"], "secrets": ["wandb"], **values}
    return VmAccount(name, VmAccountArgs(spec=VmAccountSpec.model_validate(given), project=PROJECT))


def vm_jobs(name: str, kinds: Sequence[str] = ("gce", "tpu-vm"), **values: object) -> VmJobs:
    network = wired()["network"]
    spec = VmJobsSpec.model_validate(values)
    return VmJobs(name, VmJobsArgs(spec=spec, project=PROJECT, region="us-central1", network=network, kinds=kinds))


def bucket_targets(name: str) -> BucketTargets:
    bucket = pulumi.Output.from_input("records")
    return BucketTargets(name, BucketTargetsArgs(spec=BucketTargetsSpec(), bucket=bucket, targets={"tpu": "{}"}))


MAKERS: dict[str, Callable[[str], Component]] = {
    "vm-account": vm_account,
    "vm-jobs": vm_jobs,
    "bucket-targets": bucket_targets,
    "tpu-vm": lambda name: tpu_vm(name, data_disks={"data": {"size_gib": 100}}),
    "tpu-queue": tpu_queue,
    "queued-tpu": queued_tpu,
    "reconcile-function": reconcile_function,
    "gpu-vm": gpu_vm,
    "gpu-vm-group": lambda name: gpu_vm_group(name, compact_placement=True, capacity="spot"),
}
