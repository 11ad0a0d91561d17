"""A job as the Job of Google Batch's API. Pure."""

import json
from collections.abc import Iterable
from typing import Any

from accel.contract import variables
from accel.contract.google_jobs import GoogleBatchTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules import Finding
from accel.rules.batch import jobs, machines
from accel.rules.gcp import gpu_vm_jobs, vms
from accel.rules.gcp import labels as gcp_labels
from accel.rules.jobs import containers, image_cuda, launchers, placeholders
from accel.rules.vertex import jobs as vertex_jobs

from ...model import sweep_tasks
from ...model.blocks_google import GoogleBatch
from ...model.job import Job, unused_blocks
from ..base import Request
from ..vm import agent_spec
from . import labels as marks
from . import nodes, retries, runnables, storage
from .labels import KIND
from .machines import BatchChoice, choose, field_name

MIB_A_GIB = 1024
MODELS = {"spot": "SPOT", "flex-start": "FLEX_START", "on-demand": "STANDARD"}
_OWN_LABELS = 5
"""marks.labelled adds so many."""


def render(job: Job, name: str, key: str, target_name: str, target: GoogleBatchTarget) -> Request:
    """The request for a job; its body is {"parent": ..., "job": ...}. Raises BadInputs with every field that cannot be
    honoured."""
    block = job.google_batch or GoogleBatch()
    diagnostics = Diagnostics(
        runnables.faults(job, block),
        [*unused_blocks(job, KIND), *runnables.untold(job, block), *sweep_tasks.cap_warnings(job, KIND)],
        name_of=field_name,
    )
    secrets = agent_spec.secrets(job, target.project, diagnostics)
    choice = choose(job, target, diagnostics)
    diagnostics.add(_findings(job, block, target, choice))
    if choice is None or diagnostics.errors:
        raise diagnostics.refusal()
    name = marks.job_id(name)
    made = marks.labelled(_job(job, block, target, choice, secrets, name), job.name, key, target_name)
    diagnostics.add(jobs.size(len(json.dumps(made).encode())))
    diagnostics.raise_errors()
    parent = marks.Scope(target.project, target.region).parent
    return Request(
        KIND, target_name, name, key, {"parent": parent, "job": made}, tuple(dict.fromkeys(diagnostics.warnings))
    )


def _findings(job: Job, block: GoogleBatch, target: GoogleBatchTarget, choice: BatchChoice | None) -> Iterable[Finding]:
    count = max(job.tasks, job.nodes)
    found = jobs.tasks(count, job.parallelism, in_order=block.in_order)
    found += jobs.run_time(job.timeout_s, flex_start=block.provisioning == "flex-start")
    found += jobs.retries(job.retries, job.lost_retries, job.nodes)
    retried, failed = retries.exit_codes(block)
    found += jobs.exit_codes(retried, failed, (job.retries or 0) + (job.lost_retries or 0) or None)
    if _hosts(job, block):
        found += jobs.hosts(count, "nodes" if job.nodes > 1 else "tasks")
    found += containers.environment(job.env) + jobs.environment({**job.env, **job.secrets})
    found += vms.own_keys(job.labels, ())
    found += gcp_labels.labels(job.labels, own=len(target.labels) + _OWN_LABELS)
    found += [each for name, text in job.env.items() for each in placeholders.addresses(f"env.{name}", [text])]
    found += storage.findings(job, block) + runnables.findings(job, block)
    if choice is None:
        return found
    found += launchers.check(job.command, job.env, launchers.Shape(job.nodes, choice.gpus or None))
    if choice.template is None:
        found += vertex_jobs.visible_devices(job.env, choice.gpus)
        found += image_cuda.image(job.image or "", [choice.accelerator] if choice.accelerator else [])
    if block.provisioning and choice.machine:
        found += gpu_vm_jobs.flex_start(choice.machine, choice.gpus, 1, bool(job.spot), None)
    image = block.boot_image or target.boot_image or choice.template
    found += machines.drivers(block.install_drivers, _gpus(choice), image is not None)
    if choice.per_vm:
        at_once = min(count, sweep_tasks.at_once(job, KIND) or jobs.MOST_PARALLEL)
        found += jobs.vms(at_once, choice.per_vm, len(choice.zones))
    return found


def _gpus(choice: BatchChoice) -> int:
    """GPUs of a VM; one of a template may have some that nobody here knows of."""
    return choice.gpus or (1 if choice.template else 0)


def _hosts(job: Job, block: GoogleBatch) -> bool:
    return job.nodes > 1 if block.hosts_file is None else block.hosts_file


def _job(
    job: Job, block: GoogleBatch, target: GoogleBatchTarget, choice: BatchChoice, secrets: dict[str, str], name: str
) -> dict[str, Any]:
    labels = {**target.labels, **gcp_labels.translated(job.labels)}
    volumes = storage.mounted(job, block, scripts=runnables.scripts(job, block))
    made: dict[str, Any] = {
        "taskGroups": [_group(job, block, choice, volumes, secrets, name)],
        "allocationPolicy": _allocation(job, block, target, choice, labels),
        "labels": labels,
        "logsPolicy": storage.logs(block, volumes),
    }
    if block.priority is not None:
        made["priority"] = block.priority
    if target.notifications:
        made["notifications"] = [{"pubsubTopic": target.notifications, "message": {"type": "JOB_STATE_CHANGED"}}]
    return made


def _group(
    job: Job,
    block: GoogleBatch,
    choice: BatchChoice,
    volumes: list[storage.Mounted],
    secrets: dict[str, str],
    name: str,
) -> dict[str, Any]:
    hosts = _hosts(job, block)
    spec: dict[str, Any] = {
        "runnables": runnables.build(job, block, volumes, hosts=hosts),
        "computeResource": _resources(job, choice),
        "environment": _environment(job, choice, secrets, name),
        **retries.of_job(job, block),
    }
    if volumes:
        spec["volumes"] = [each.volume for each in volumes]
    if job.timeout_s:
        spec["maxRunDuration"] = f"{job.timeout_s}s"
    group: dict[str, Any] = {"taskSpec": spec, "taskCount": max(job.tasks, job.nodes)}
    # Without it, Batch runs all tasks at once, up to 5,000.
    if parallelism := job.nodes if job.nodes > 1 else 1 if block.in_order else sweep_tasks.at_once(job, KIND):
        group["parallelism"] = parallelism
    if choice.per_vm:
        group["taskCountPerNode"] = choice.per_vm
    if block.in_order:
        group["schedulingPolicy"] = "IN_ORDER"
    if hosts:
        group["requireHostsFile"] = True
    if block.permissive_ssh:
        group["permissiveSsh"] = True
    return group


def _resources(job: Job, choice: BatchChoice) -> dict[str, int]:
    asked = {
        "cpuMilli": choice.cpu_milli,
        "memoryMib": choice.memory_mib,
        "bootDiskMib": job.disk_gib * MIB_A_GIB if job.disk_gib else None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _environment(job: Job, choice: BatchChoice, secrets: dict[str, str], name: str) -> dict[str, Any]:
    """What every task is told; the job file's own variables win over torchrun's."""
    array = job.tasks > 1
    ours = {
        variables.JOB_NAME: job.name,
        variables.TASK_COUNT: str(job.tasks),
        variables.INDEX_FROM: variables.INDEX_VARIABLE[KIND] if array else variables.TASK_INDEX,
    }
    if not array:
        ours[variables.TASK_INDEX] = "0"
    several = nodes.environment(name, job.nodes, choice.gpus) if job.nodes > 1 else {}
    told = several | job.env | ours | sweep_tasks.environment(job)
    made: dict[str, Any] = {"variables": dict(sorted(told.items()))}
    if secrets:
        made["secretVariables"] = secrets
    return made


def _allocation(
    job: Job, block: GoogleBatch, target: GoogleBatchTarget, choice: BatchChoice, labels: dict[str, str]
) -> dict[str, Any]:
    zones = [f"zones/{zone}" for zone in choice.zones]
    made: dict[str, Any] = {
        "instances": [_instance(job, block, target, choice)],
        "location": {"allowedLocations": zones or [f"regions/{target.region}"]},
        "serviceAccount": {"email": target.service_account},
        "labels": {**labels, marks.MAKER: marks.JOBS},
    }
    if choice.template is None:
        # A template has a network of its own; naming one twice is refused. Source:
        # https://docs.cloud.google.com/batch/docs/troubleshooting#repeated-networks
        interface: dict[str, Any] = {"network": target.network, "subnetwork": target.subnetwork}
        if not target.external_address:
            interface["noExternalIpAddress"] = True
        made["network"] = {"networkInterfaces": [interface]}
        if target.tags:
            made["tags"] = list(target.tags)
    if block.compact:
        made["placement"] = {"collocation": "COLLOCATED"}
    return made


def _instance(job: Job, block: GoogleBatch, target: GoogleBatchTarget, choice: BatchChoice) -> dict[str, Any]:
    made: dict[str, Any] = {"blockProjectSshKeys": True}
    if (choice.gpus and block.install_drivers is not False) or block.install_drivers:
        made["installGpuDrivers"] = True
    if choice.template:
        return {**made, "instanceTemplate": choice.template}
    policy: dict[str, Any] = {"machineType": choice.machine, "provisioningModel": MODELS[choice.capacity]}
    if accelerators := _accelerators(block, choice):
        policy["accelerators"] = accelerators
    if boot := _boot_disk(job, block, target, choice):
        policy["bootDisk"] = boot
    if disks := storage.disks(block):
        policy["disks"] = disks
    if choice.reservation:
        policy["reservation"] = choice.reservation
    return {**made, "policy": policy}


def _accelerators(block: GoogleBatch, choice: BatchChoice) -> list[dict[str, Any]]:
    """Those that are attached; GPUs that are built in come with the machine, and are named for their driver alone."""
    if not choice.accelerator or not (choice.attached or block.driver_version):
        return []
    made: dict[str, Any] = {"type": choice.accelerator, "count": choice.gpus}
    if block.driver_version:
        made["driverVersion"] = block.driver_version
    return [made]


def _boot_disk(job: Job, block: GoogleBatch, target: GoogleBatchTarget, choice: BatchChoice) -> dict[str, Any]:
    """What differs from Batch's own choice."""
    own = nodes.BOOT_IMAGE if _hosts(job, block) else None
    asked = {"image": block.boot_image or target.boot_image or own, "type": choice.disk_type}
    return {name: value for name, value in asked.items() if value}
