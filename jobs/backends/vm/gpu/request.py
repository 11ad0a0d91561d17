"""A job as GPU VMs of Compute Engine, without what differs by attempt. Pure. `machine` of the body: {"properties":
InstanceProperties, "subnetworks": by region, "group": whether there are several, "wait_s": how long a flex-start VM
waits for capacity, null for others}. Types of machines, disks and accelerators are bare names, as instance templates
accept them."""

import json
from dataclasses import dataclass
from typing import Any

from accel.contract.google_vms import GceTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules.gcp import gpu_vm_jobs, tpu_jobs, vms
from accel.rules.gcp import labels as gcp_labels
from accel.rules.jobs import containers, launchers

from ....model.blocks import Gce
from ....model.job import Job, unused_blocks
from ...base import Request
from .. import agent_spec, labels
from .machines import FIELDS, VmChoice, choose

KIND = "gce"

GRACE_S, SPOT_GRACE_S = 30, 20
"""Seconds between SIGTERM and SIGKILL. A Spot machine has 30 seconds, of which its agent needs some to report how the
job ended. Source: https://docs.cloud.google.com/compute/docs/instances/spot#preemption-process"""
DRIVER_WAIT_S, MEET_WAIT_S = 900, 900
"""Seconds to wait for a driver that is installed at the first boot, and for the other machines."""
MARGIN_S = 3600
"""Lifetime of machines beyond the job's own time: they boot, install a driver, pull an image, and report the end."""
LONGEST_S = 120 * 86_400
"""Longest time after which Google deletes a machine; recalled, not read on a page. A longer job has no such guard."""
FLEX_WAIT_S = 7200
"""Longest wait of a flex-start VM in its zone: two hours. Source:
https://docs.cloud.google.com/compute/docs/instances/about-flex-start-vms"""


@dataclass(frozen=True)
class Draft:
    """Job during rendering, and its machines if any fit."""

    job: Job
    target: GceTarget
    choice: VmChoice | None

    @property
    def block(self) -> Gce:
        return self.job.gce or Gce()


def render(job: Job, name: str, key: str, target_name: str, target: GceTarget) -> Request:
    diagnostics = Diagnostics(name_of=lambda field: FIELDS.get(field, field))
    secrets = agent_spec.secrets(job, target.project, diagnostics)
    choice = choose(job, target, diagnostics)
    draft = Draft(job, target, choice)
    for check in CHECKS:
        check(draft, diagnostics)
    if choice is None:
        raise diagnostics.refusal()
    body = _body(job, target, choice, secrets)
    diagnostics.add(tpu_jobs.size(len(json.dumps(body["job"]).encode())))
    diagnostics.raise_errors()
    return Request(KIND, target_name, labels.machine_name(name), key, body, tuple(diagnostics.warnings))


def _unsupported(draft: Draft, diagnostics: Diagnostics) -> None:
    diagnostics.errors += [*agent_spec.unsupported_fields(draft.job), *agent_spec.mounts(draft.job, "a VM")]
    diagnostics.warnings += unused_blocks(draft.job, KIND)


def _environment(draft: Draft, diagnostics: Diagnostics) -> None:
    job = draft.job
    diagnostics.add(containers.environment(job.env) + gpu_vm_jobs.environment({**job.env, **job.secrets}))


def _launcher(draft: Draft, diagnostics: Diagnostics) -> None:
    job, gpus = draft.job, draft.choice.gpus if draft.choice else None
    diagnostics.add(launchers.check(job.command, job.env, launchers.Shape(job.nodes, gpus)))


def _labels(draft: Draft, diagnostics: Diagnostics) -> None:
    diagnostics.add(agent_spec.label_findings(draft.job, draft.target))


def _life(draft: Draft, diagnostics: Diagnostics) -> None:
    job, block = draft.job, draft.block
    diagnostics.add(gpu_vm_jobs.max_run(block.max_run, job.timeout_s, MARGIN_S))
    diagnostics.add(gpu_vm_jobs.notice(block.notice_s, bool(job.spot)))


def _capacity(draft: Draft, diagnostics: Diagnostics) -> None:
    job, choice = draft.job, draft.choice
    if choice and draft.block.provisioning:
        run_s = _max_run_s(job, choice)
        diagnostics.add(gpu_vm_jobs.flex_start(choice.machine, choice.gpus, job.nodes, bool(job.spot), run_s))
    if choice and choice.spot:
        diagnostics.add(vms.provisioning(choice.capacity, notice_s=draft.block.notice_s))


def _image(draft: Draft, diagnostics: Diagnostics) -> None:
    diagnostics.add(agent_spec.image(draft.job))


CHECKS = (_unsupported, _environment, _launcher, _labels, _life, _capacity, _image)
"""Checks for what a VM cannot honour of a job, in the order of the messages."""


def _max_run_s(job: Job, choice: VmChoice) -> int | None:
    """Return the seconds after which Google deletes the machines by itself; None if it cannot."""
    block = job.gce or Gce()
    found = block.max_run or (job.timeout_s + MARGIN_S if job.timeout_s else None)
    if found is None and choice.capacity == "flex-start":
        return vms.FLEX_LONGEST_S
    return found if found is None or found <= LONGEST_S else None


def _timeout_s(job: Job, max_run_s: int | None) -> int | None:
    """Return the job's own timeout, or else one that ends the job before its machines are deleted."""
    return job.timeout_s if job.timeout_s or max_run_s is None else max_run_s - MARGIN_S


def _body(job: Job, target: GceTarget, choice: VmChoice, secrets: dict[str, str]) -> dict[str, Any]:
    block = job.gce or Gce()
    max_run_s = _max_run_s(job, choice)
    timeout_s = _timeout_s(job, max_run_s)
    wait_s = FLEX_WAIT_S if choice.capacity == "flex-start" else None
    grace_s = block.grace_s or (SPOT_GRACE_S if choice.spot and not block.notice_s else GRACE_S)
    spec = agent_spec.agent_spec(
        job,
        KIND,
        target,
        secrets,
        hosts=job.nodes,
        slices=1,
        hosts_per_slice=job.nodes,
        gpus=choice.gpus,
        timeout_s=timeout_s,
        grace_s=grace_s,
        driver_wait_s=DRIVER_WAIT_S,
        meet_wait_s=MEET_WAIT_S,
    )
    return {
        "job": spec,
        **agent_spec.ground(target, choice.zones),
        labels.PREFIX: target.machine_prefix,
        "hosts": job.nodes,
        "gpus": choice.gpus,
        "chips": 0,
        "spot": choice.spot,
        "type": choice.machine,
        "machine": {
            "properties": _properties(job, target, choice, max_run_s),
            "subnetworks": choice.subnetworks,
            "group": job.nodes > 1,
            "wait_s": wait_s,
        },
        **agent_spec.retries(job),
        "zone_wait_s": wait_s,
        "timeout_s": timeout_s,
        "expires_s": (wait_s or 0) + (max_run_s or agent_spec.RUN_S) + agent_spec.SLACK_S,
    }


def _properties(job: Job, target: GceTarget, choice: VmChoice, max_run_s: int | None) -> dict[str, Any]:
    """Return InstanceProperties, without the subnetwork, the attempt's labels and what starts the agent. Source:
    https://docs.cloud.google.com/compute/docs/reference/rest/v1/instances"""
    disk_gib = target.disk_gib + (job.disk_gib or 0)
    metadata = {**labels.METADATA, **(labels.DRIVER if choice.gpus else {})}
    interface: dict[str, Any] = {"network": target.network}
    if target.external_address:
        interface["accessConfigs"] = [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}]
    made: dict[str, Any] = {
        "machineType": choice.machine,
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {
                    "sourceImage": target.image,
                    "diskSizeGb": str(disk_gib),
                    "diskType": choice.disk_type,
                },
            }
        ],
        "networkInterfaces": [interface],
        "serviceAccounts": [{"email": target.service_account, "scopes": [labels.SCOPE]}],
        "scheduling": _scheduling(job, choice, max_run_s),
        # No Secure Boot: nobody signs a driver that is built at the first boot.
        "shieldedInstanceConfig": {"enableVtpm": True, "enableIntegrityMonitoring": True},
        "labels": {**target.labels, **gcp_labels.to_gcp(job.labels)},
        "metadata": {"items": [{"key": name, "value": value} for name, value in metadata.items()]},
    }
    if target.tags:
        made["tags"] = {"items": list(target.tags)}
    if choice.attached:
        made["guestAccelerators"] = [{"acceleratorType": choice.attached, "acceleratorCount": choice.gpus}]
    if affinity := _affinity(choice):
        made["reservationAffinity"] = affinity
    if choice.placement:
        made["resourcePolicies"] = [choice.placement]
    return made


def _scheduling(job: Job, choice: VmChoice, max_run_s: int | None) -> dict[str, Any]:
    """Return the Scheduling. A lost machine is not restarted: the record counts attempts, and starts the next."""
    models = {"spot": "SPOT", "flex-start": "FLEX_START", "on-demand": "STANDARD"}
    made: dict[str, Any] = {
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": False,
        "provisioningModel": models[choice.capacity],
    }
    if choice.capacity != "on-demand" or max_run_s:
        made["instanceTerminationAction"] = "DELETE"
    if max_run_s:
        made["maxRunDuration"] = {"seconds": str(max_run_s)}
    if choice.spot and job.gce and job.gce.notice_s:
        made["preemptionNoticeDuration"] = {"seconds": str(job.gce.notice_s)}
    return made


def _affinity(choice: VmChoice) -> dict[str, Any]:
    if choice.capacity != "on-demand":
        return {"consumeReservationType": "NO_RESERVATION"}
    if choice.reservation is None:
        return {}
    return {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [choice.reservation],
    }
