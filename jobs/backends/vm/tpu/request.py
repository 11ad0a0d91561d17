"""A job as a queued resource of the Cloud TPU API, without what differs by attempt. Pure. `machine` of the body:
{"node": the Node, "subnetworks": by region, "slices", "valid_s", "reservation"}."""

import json
from collections.abc import Iterable
from typing import Any

from accel.contract.google_vms import TpuVmTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules import Finding, apply
from accel.rules.gcp import labels as gcp_labels
from accel.rules.gcp import tpu_jobs, tpu_runtimes
from accel.rules.jobs import containers, launchers

from ....model.blocks import TpuVm
from ....model.job import Job, unused_blocks
from ...base import Request
from .. import agent_spec, labels
from .slices import FIELDS, SliceChoice, choose

KIND = "tpu-vm"

MEET_WAIT_S = 900
"""Seconds that the hosts of a slice wait for each other: their machines boot together."""
WAIT_S = 7 * 86_400
"""Part of the time after which an attempt's machines expire: a wait without a limit."""


def render(job: Job, name: str, key: str, target_name: str, target: TpuVmTarget) -> Request:
    diagnostics = Diagnostics(
        [*agent_spec.unsupported_fields(job), *agent_spec.mounts(job, "a TPU VM")],
        unused_blocks(job, KIND),
        name_of=lambda field: FIELDS.get(field, field),
    )
    secrets = agent_spec.secrets(job, target.project, diagnostics)
    choice = choose(job, target, diagnostics)
    diagnostics.add(_findings(job, target))
    runtime = _runtime(job, choice, diagnostics) if choice else ""
    if diagnostics.errors or choice is None:
        raise diagnostics.refusal()
    body = _body(job, target, choice, runtime, secrets)
    diagnostics.add(tpu_jobs.size(len(json.dumps(body["job"]).encode())))
    diagnostics.raise_errors()
    return Request(KIND, target_name, labels.machine_name(name), key, body, tuple(diagnostics.warnings))


def _findings(job: Job, target: TpuVmTarget) -> Iterable[Finding]:
    found = containers.environment(job.env) + tpu_jobs.environment({**job.env, **job.secrets})
    found += launchers.check(job.command, job.env, launchers.Shape(job.nodes, None))
    found += tpu_jobs.disk(job.disk_gib)
    found += agent_spec.label_findings(job, target)
    return found + agent_spec.image(job)


def _runtime(job: Job, choice: SliceChoice, diagnostics: Diagnostics) -> str:
    """Return the TPU software version: the generation's, or the job's under its present name."""
    own = next(iter(choice.slice.runtime_versions))
    wanted = job.tpu_vm.runtime_version if job.tpu_vm else None
    if wanted is None:
        return own
    findings = tpu_runtimes.runtime(wanted, choice.slice.name, field="tpu_vm.runtime_version")
    diagnostics.add(findings)
    return str(apply(findings).replacements.get("tpu_vm.runtime_version", wanted))


def _body(job: Job, target: TpuVmTarget, choice: SliceChoice, runtime: str, secrets: dict[str, str]) -> dict[str, Any]:
    block = job.tpu_vm or TpuVm()
    wait_s = block.zone_wait_s or block.valid_for_s or WAIT_S
    spec = agent_spec.agent_spec(
        job,
        KIND,
        target,
        secrets,
        hosts=choice.hosts,
        slices=choice.slices,
        hosts_per_slice=choice.slice.hosts,
        gpus=0,
        timeout_s=job.timeout_s,
        grace_s=block.grace_s,
        driver_wait_s=0,
        meet_wait_s=MEET_WAIT_S,
    )
    return {
        "job": spec,
        **agent_spec.ground(target, choice.zones),
        "hosts": choice.hosts,
        "gpus": 0,
        "chips": choice.slices * choice.slice.chips,
        "spot": choice.spot,
        "type": choice.slice.name,
        "machine": {
            "node": _node(job, target, choice, runtime),
            "subnetworks": choice.subnetworks,
            "slices": choice.slices,
            "valid_s": block.valid_for_s,
            "reservation": choice.reservation,
        },
        **agent_spec.retries(job),
        "zone_wait_s": block.zone_wait_s,
        "timeout_s": job.timeout_s,
        "expires_s": wait_s + (job.timeout_s or agent_spec.RUN_S) + agent_spec.SLACK_S,
    }


def _node(job: Job, target: TpuVmTarget, choice: SliceChoice, runtime: str) -> dict[str, Any]:
    """Return the Node, without its subnetwork, the attempt's labels and what starts the agent. Source:
    https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes"""
    shape: dict[str, Any] = {"acceleratorType": choice.slice.name}
    if choice.shaped:
        shape = {"acceleratorConfig": {"type": choice.slice.version, "topology": choice.slice.topology}}
    node = {
        **shape,
        "runtimeVersion": runtime,
        "networkConfig": {"network": target.network, "enableExternalIps": target.external_address},
        "serviceAccount": {"email": target.service_account, "scope": [labels.SCOPE]},
        "labels": {**target.labels, **gcp_labels.to_gcp(job.labels)},
        "metadata": labels.METADATA,
    }
    return node | ({"tags": list(target.tags)} if target.tags else {})
