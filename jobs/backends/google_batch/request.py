"""A job as a Job of Google Batch's API. Pure."""

import json
from dataclasses import dataclass
from typing import Any

from accel.contract.google_jobs import GoogleBatchTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules.batch import jobs, machines
from accel.rules.gcp import gpu_vm_jobs, vms
from accel.rules.gcp import labels as gcp_labels
from accel.rules.jobs import containers, image_cuda, launchers, placeholders
from accel.rules.vertex import jobs as vertex_jobs

from ...model import sweep_tasks
from ...model.blocks_google import GoogleBatch
from ...model.job import Job, unused_blocks
from .. import tasks
from ..base import Request
from ..checks import run_checks
from ..vm import agent_spec
from . import labels as marks
from . import nodes, retries, runnables, storage
from .labels import KIND
from .machines import BatchChoice, choose, field_name

MIB_A_GIB = 1024
MODELS = {"spot": "SPOT", "flex-start": "FLEX_START", "on-demand": "STANDARD"}
_OWN_LABELS = 5
"""Number of labels that labels.add_labels adds."""


@dataclass(frozen=True)
class Draft:
    """Job during rendering."""

    job: Job
    name: str
    target: GoogleBatchTarget
    secrets: dict[str, str]

    @property
    def block(self) -> GoogleBatch:
        return self.job.google_batch or GoogleBatch()

    @property
    def count(self) -> int:
        """Number of tasks, or of nodes, each of which is a task."""
        return max(self.job.tasks, self.job.nodes)

    @property
    def hosts(self) -> bool:
        listed = self.block.hosts_file
        return self.job.nodes > 1 if listed is None else listed


def render(job: Job, name: str, key: str, target_name: str, target: GoogleBatchTarget) -> Request:
    """Return a request with the body {"parent": ..., "job": ...}. Raise BadInputs for what cannot be honoured."""
    diagnostics = Diagnostics(name_of=field_name)
    secrets = agent_spec.secrets(job, target.project, diagnostics)
    draft = Draft(job, marks.job_id(name), target, secrets)
    choice = choose(job, target, diagnostics)
    run_checks(JOB, PLACED, draft, choice, diagnostics)
    if choice is None or diagnostics.errors:
        raise diagnostics.refusal()
    batch_job = marks.add_labels(_job(draft, choice), job.name, key, target_name)
    diagnostics.add(jobs.size(len(json.dumps(batch_job).encode())))
    diagnostics.raise_errors()
    body = {"parent": marks.Scope(target.project, target.region).parent, "job": batch_job}
    return Request(KIND, target_name, draft.name, key, body, tuple(dict.fromkeys(diagnostics.warnings)))


def _unsupported(draft: Draft, diagnostics: Diagnostics) -> None:
    job, block = draft.job, draft.block
    diagnostics.errors += runnables.faults(job, block)
    if job.disk_gib and block.boot_disk_gib:
        # Batch would take the latter alone. Source: the discovery document of batch.v1 (Disk.sizeGb).
        beside = f"google_batch.boot_disk_gib, {block.boot_disk_gib}, is the size of the whole disk"
        diagnostics.error(f"disk_gib: is {job.disk_gib}, and {beside}; write one of the two")
    diagnostics.warnings += [*unused_blocks(job, KIND), *runnables.untold(job, block)]
    diagnostics.warnings += sweep_tasks.cap_warnings(job, KIND)


def _tasks(draft: Draft, diagnostics: Diagnostics) -> None:
    job, block = draft.job, draft.block
    diagnostics.add(jobs.tasks(draft.count, job.parallelism, in_order=block.in_order, nodes=job.nodes))
    diagnostics.add(jobs.run_time(job.timeout_s, flex_start=block.provisioning == "flex-start"))
    if draft.hosts:
        diagnostics.add(jobs.hosts(draft.count, "nodes" if job.nodes > 1 else "tasks"))


def _retries(draft: Draft, diagnostics: Diagnostics) -> None:
    job = draft.job
    diagnostics.add(jobs.retries(job.retries, job.lost_retries, job.nodes))
    retried, failed = retries.exit_codes(draft.block)
    diagnostics.add(jobs.exit_codes(retried, failed, (job.retries or 0) + (job.lost_retries or 0) or None))


def _variables(draft: Draft, diagnostics: Diagnostics) -> None:
    job = draft.job
    diagnostics.add(containers.environment(job.env))
    diagnostics.add(jobs.environment({**job.env, **job.secrets}))
    for name, text in job.env.items():
        diagnostics.add(placeholders.addresses(f"env.{name}", [text]))


def _labels(draft: Draft, diagnostics: Diagnostics) -> None:
    diagnostics.add(vms.own_keys(draft.job.labels, ()))
    diagnostics.add(gcp_labels.labels(draft.job.labels, own=len(draft.target.labels) + _OWN_LABELS))


def _steps(draft: Draft, diagnostics: Diagnostics) -> None:
    diagnostics.add(storage.findings(draft.job, draft.block))
    diagnostics.add(runnables.findings(draft.job, draft.block))


def _gpus(draft: Draft, choice: BatchChoice, diagnostics: Diagnostics) -> None:
    """Check what the job assumes about its GPUs. The GPUs of a template may be unknown here."""
    job, block = draft.job, draft.block
    diagnostics.add(launchers.check(job.command, job.env, launchers.Shape(job.nodes, choice.gpus or None)))
    if choice.template is None:
        diagnostics.add(vertex_jobs.visible_devices(job.env, choice.gpus))
        diagnostics.add(image_cuda.image(job.image or "", [choice.accelerator] if choice.accelerator else []))
    own_image = block.boot_image or draft.target.boot_image or choice.template
    gpus = choice.gpus or (1 if choice.template else 0)
    diagnostics.add(machines.drivers(block.install_drivers, gpus, own_image is not None))


def _capacity(draft: Draft, choice: BatchChoice, diagnostics: Diagnostics) -> None:
    job = draft.job
    if draft.block.provisioning and choice.machine:
        diagnostics.add(gpu_vm_jobs.flex_start(choice.machine, choice.gpus, 1, bool(job.spot), None))
    if choice.per_vm:
        at_once = min(draft.count, sweep_tasks.at_once(job, KIND) or jobs.MOST_PARALLEL)
        diagnostics.add(jobs.vms(at_once, choice.per_vm, len(choice.zones)))


JOB = (_unsupported, _tasks, _retries, _variables, _labels, _steps)

PLACED = (_gpus, _capacity)
"""Checks of a job whose VMs are chosen."""


def _job(draft: Draft, choice: BatchChoice) -> dict[str, Any]:
    job, block, target = draft.job, draft.block, draft.target
    labels = {**target.labels, **gcp_labels.to_gcp(job.labels)}
    volumes = storage.mounted_volumes(job, block, scripts=runnables.scripts(job, block))
    fields: dict[str, Any] = {
        "taskGroups": [_group(draft, choice, volumes)],
        "allocationPolicy": _allocation(draft, choice, labels),
        "labels": labels,
        "logsPolicy": storage.logs(block, volumes),
    }
    if block.priority is not None:
        fields["priority"] = block.priority
    if target.notifications:
        fields["notifications"] = [{"pubsubTopic": target.notifications, "message": {"type": "JOB_STATE_CHANGED"}}]
    return fields


def _group(draft: Draft, choice: BatchChoice, volumes: list[storage.MountedVolume]) -> dict[str, Any]:
    job, block = draft.job, draft.block
    spec: dict[str, Any] = {
        "runnables": runnables.build(job, block, volumes, hosts=draft.hosts),
        "computeResource": _resources(job, choice),
        "environment": _environment(draft, choice),
        **retries.of_job(job, block),
    }
    if volumes:
        spec["volumes"] = [each.volume for each in volumes]
    if job.timeout_s:
        spec["maxRunDuration"] = f"{job.timeout_s}s"
    group: dict[str, Any] = {"taskSpec": spec, "taskCount": draft.count}
    # Without it, Batch runs all tasks at once, up to 5,000.
    if parallelism := job.nodes if job.nodes > 1 else 1 if block.in_order else sweep_tasks.at_once(job, KIND):
        group["parallelism"] = parallelism
    if choice.per_vm:
        group["taskCountPerNode"] = choice.per_vm
    if block.in_order:
        group["schedulingPolicy"] = "IN_ORDER"
    if draft.hosts:
        group["requireHostsFile"] = True
    if block.permissive_ssh:
        group["permissiveSsh"] = True
    return group


def _resources(job: Job, choice: BatchChoice) -> dict[str, int]:
    fields = {
        "cpuMilli": choice.cpu_milli,
        "memoryMib": choice.memory_mib,
        "bootDiskMib": job.disk_gib * MIB_A_GIB if job.disk_gib else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _environment(draft: Draft, choice: BatchChoice) -> dict[str, Any]:
    """Let the job file's own variables win over torchrun's."""
    job = draft.job
    several = nodes.environment(draft.name, job.nodes, choice.gpus) if job.nodes > 1 else {}
    merged = several | job.env | tasks.environment(job, KIND) | sweep_tasks.environment(job)
    fields: dict[str, Any] = {"variables": dict(sorted(merged.items()))}
    if draft.secrets:
        fields["secretVariables"] = draft.secrets
    return fields


def _allocation(draft: Draft, choice: BatchChoice, labels: dict[str, str]) -> dict[str, Any]:
    target = draft.target
    zones = [f"zones/{zone}" for zone in choice.zones]
    fields: dict[str, Any] = {
        "instances": [_instance(draft, choice)],
        "location": {"allowedLocations": zones or [f"regions/{target.region}"]},
        "serviceAccount": {"email": target.service_account},
        "labels": {**labels, marks.MAKER: marks.JOBS},
    }
    if choice.template is None:
        # A template has a network of its own, and a second one is refused. Source:
        # https://docs.cloud.google.com/batch/docs/troubleshooting#repeated-networks
        interface: dict[str, Any] = {"network": target.network, "subnetwork": target.subnetwork}
        if not target.external_address:
            interface["noExternalIpAddress"] = True
        fields["network"] = {"networkInterfaces": [interface]}
        if target.tags:
            fields["tags"] = list(target.tags)
    if draft.block.compact:
        fields["placement"] = {"collocation": "COLLOCATED"}
    return fields


def _instance(draft: Draft, choice: BatchChoice) -> dict[str, Any]:
    block = draft.block
    fields: dict[str, Any] = {"blockProjectSshKeys": True}
    if (choice.gpus and block.install_drivers is not False) or block.install_drivers:
        fields["installGpuDrivers"] = True
    if choice.template:
        return {**fields, "instanceTemplate": choice.template}
    policy: dict[str, Any] = {"machineType": choice.machine, "provisioningModel": MODELS[choice.capacity]}
    if accelerators := _accelerators(block, choice):
        policy["accelerators"] = accelerators
    if boot := _boot_disk(draft, choice):
        policy["bootDisk"] = boot
    if disks := storage.disks(block):
        policy["disks"] = disks
    if choice.reservation:
        policy["reservation"] = choice.reservation
    return {**fields, "policy": policy}


def _accelerators(block: GoogleBatch, choice: BatchChoice) -> list[dict[str, Any]]:
    """Return the attached GPUs. Built-in ones come with the machine, and are named for their driver alone."""
    if not choice.accelerator or not (choice.attached or block.driver_version):
        return []
    fields: dict[str, Any] = {"type": choice.accelerator, "count": choice.gpus}
    if block.driver_version:
        fields["driverVersion"] = block.driver_version
    return [fields]


def _boot_disk(draft: Draft, choice: BatchChoice) -> dict[str, Any]:
    own = nodes.BOOT_IMAGE if draft.hosts else None
    fields = {
        "image": draft.block.boot_image or draft.target.boot_image or own,
        "sizeGb": draft.block.boot_disk_gib,
        "type": choice.disk_type,
    }
    return {name: value for name, value in fields.items() if value}
