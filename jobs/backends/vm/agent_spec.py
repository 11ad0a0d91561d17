"""Common part of requests for machines: zones, secrets, mounts, and the agent spec."""

import re
from collections.abc import Sequence
from typing import Any

from accel.contract import buckets
from accel.contract.google_vms import VmGround
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.messages import did_you_mean
from accel.rules import Finding
from accel.rules.gcp import labels as gcp_labels
from accel.rules.gcp import vms
from accel.rules.jobs import containers, placeholders

from ...model import sweep_tasks
from ...model.fields import Mount
from ...model.job import Job, prefers
from .. import grace, tasks
from . import labels

LOST_RETRIES = 3
"""Retries after preemption, if a job sets none."""
RUN_S, SLACK_S = 28 * 86_400, 86_400
"""Parts of the time after which an attempt's machines expire: a run without a limit, and a margin."""
_SECRET = re.compile(r"(?:projects/([a-z0-9:.-]+)/secrets/)?([A-Za-z0-9_-]{1,255})(?:/versions/(latest|[0-9]+))?")
_BUCKET = re.compile(r"gs://[a-z0-9][-_.a-z0-9]{1,220}[a-z0-9](?:/[^,\0]*)?")


def secrets(job: Job, project: str, diagnostics: Diagnostics) -> dict[str, str]:
    """Return versions in Secret Manager by variable. A wrong one's text is not shown: it may be the secret itself."""
    found: dict[str, str] = {}
    for name, reference in sorted(job.secrets.items()):
        parts = _SECRET.fullmatch(reference)
        # The shorter forms look like many secrets; a version distinguishes them.
        if parts is None or (parts[1] is None and parts[3] is None):
            diagnostics.error(
                f"secrets.{name}: must be projects/<project>/secrets/<secret>, or <secret>/versions/<number or latest>"
            )
            continue
        found[name] = f"projects/{parts[1] or project}/secrets/{parts[2]}/versions/{parts[3] or 'latest'}"
    return found


def mounts(job: Job, what: str) -> list[str]:
    """Return faults of mounts. `what` is the machine, in words."""
    return [fault for i, mount in enumerate(job.mounts) for fault in _mount(f"mounts[{i}].source", mount, what)]


def _mount(field: str, mount: Mount, what: str) -> list[str]:
    shown = mount.source[:80]
    if not _BUCKET.fullmatch(mount.source):
        return [f'{field}: "{shown}" is no gs://<bucket>[/folder]; {what} mounts nothing else']
    return [f'{field}: "{shown}" has ..'] if ".." in mount.source.split("/") else []


def unsupported_fields(job: Job) -> list[str]:
    faults = [*prefers(job), *sweep_tasks.together(job)]
    if job.tasks > 1:
        faults.append(f"tasks: is {job.tasks}, and machines of its own run one task; submit several jobs")
    if not job.image and not job.command:
        faults.append("command: is missing, and there is no image that would have one")
    if not job.image and job.shm_mib:
        faults.append("shm_mib: is of a container, and without an image the command runs on the machine itself")
    return faults


def agent_spec(
    job: Job, kind: str, target: VmGround, secrets: dict[str, str], *, grace_s: int, **more: Any
) -> dict[str, Any]:
    """Return the agent spec, without the attempt. `name` is the job file's until then."""
    return {
        "name": job.name,
        "kind": kind,
        "project": target.project,
        "log": f"projects/{target.project}/logs/{labels.LOG}",
        "image": job.image,
        "command": list(job.command),
        "env": job.env | tasks.environment(job, kind) | grace.environment(kind, grace_s),
        "secrets": secrets,
        "mounts": [mount.model_dump() for mount in job.mounts],
        "shm_mib": job.shm_mib,
        "task": None,
        "grace_s": grace_s,
        **more,
    }


def ground(target: VmGround, zones: Sequence[str]) -> dict[str, Any]:
    """Return where a request's machines and records are."""
    return {"zones": list(zones), "project": target.project, "bucket": target.bucket, "records": buckets.JOBS}


def retries(job: Job) -> dict[str, int]:
    return {
        "retries": job.retries or 0,
        "lost_retries": LOST_RETRIES if job.lost_retries is None else job.lost_retries,
    }


def label_findings(job: Job, target: VmGround) -> list[Finding]:
    own = len(labels.labels("", 1, "", 0)) + len(target.labels)
    return vms.own_keys(job.labels, ()) + gcp_labels.labels(job.labels, own=own)


def image(job: Job) -> list[Finding]:
    """Check the image, unless it is a local one, which is a folder that no push changes."""
    if not job.image or job.image.startswith(containers.LOCAL):
        return []
    return containers.image(job.image) + placeholders.value("image", job.image)


def zones(block: str, wanted: Sequence[str], target: VmGround, diagnostics: Diagnostics) -> list[str]:
    for i, zone in enumerate(wanted):
        if zone not in target.zones:
            diagnostics.error(f'{block}.zones[{i}]: unknown zone "{zone}"{did_you_mean(zone, target.zones)}')
    return [zone for zone in dict.fromkeys(wanted or target.zones) if zone in target.zones]


def subnetworks(block: str, wanted: Sequence[str], target: VmGround, diagnostics: Diagnostics) -> dict[str, str]:
    found: dict[str, str] = {}
    for zone in wanted:
        region = zone.rpartition("-")[0]
        if region in target.subnetworks:
            found[region] = target.subnetworks[region]
        else:
            diagnostics.error(f"{block}.zones: {zone}: the target has no subnetwork in {region}")
    return found
