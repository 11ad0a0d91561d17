"""A job as requests to AWS Batch. Pure, and independent of boto3."""

import re
from collections.abc import Mapping
from typing import Any

from accel.contract.targets import AwsBatchTarget
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.errors import BadInput
from accel.rules.aws import jobs, shares
from accel.rules.jobs import containers

from ...model import sweep_tasks
from ...model.job import Job
from ...model.keys import content_hash
from .. import tasks
from ..base import JobRef, Request
from ..checks import run_checks
from . import capacity, checks, definition, labels, nodes, retries
from .checks import Draft
from .definition import DefinitionChoice
from .labels import KIND

_JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:\d+)?")


def render(job: Job, name: str, key: str, target_name: str, target: AwsBatchTarget) -> Request:
    diagnostics = Diagnostics(name_of=capacity.field_name)
    draft = Draft(job, name, key, target, _dependencies(job, target.region, diagnostics), _tags(job, key, target))
    choice = definition.choose(job, target, diagnostics)
    run_checks(checks.JOB, checks.PLACED, draft, choice, diagnostics)
    body: dict[str, Any] = {}
    if choice:
        body = {"register": choice.register, "submit": _submit(draft, choice)}
        diagnostics.add(jobs.request_size(body["submit"], exports=bool(job.sweep and job.sweep.shell)))
    diagnostics.raise_errors()
    if target.claim_table is None:
        diagnostics.warning(checks.ONE_MACHINE_ONLY)
    body["submit"]["tags"][labels.SPEC] = spec_hash(body)
    return Request(KIND, target_name, name, key, body, tuple(diagnostics.warnings))


def spec_hash(body: Mapping[str, Any]) -> str:
    """Hash without the tags of hash and stack: the request of a version that did not tag its jobs is the same job."""
    submit = dict(body["submit"])
    submit["tags"] = {name: value for name, value in submit["tags"].items() if name not in (labels.SPEC, labels.STACK)}
    return content_hash({**body, "submit": submit})


def _tags(job: Job, key: str, target: AwsBatchTarget) -> dict[str, str]:
    own = {labels.JOB: job.name, labels.KEY: key, labels.STACK: target.definition_prefix}
    # As long as the hash that takes its place, so that the request's size is known.
    return dict(sorted({**job.labels, **own, labels.SPEC: "0" * 64}.items()))


def _dependencies(job: Job, region: str, diagnostics: Diagnostics) -> list[dict[str, str]]:
    waits_for: list[dict[str, str]] = []
    for i, entry in enumerate(job.aws_batch.depends_on if job.aws_batch else ()):
        field, text, kind = f"aws_batch.depends_on[{i}]", entry.job, {"type": entry.type} if entry.type else {}
        if text is None:
            waits_for.append(kind)
            continue
        job_id = text
        if ":" in text and "/" in text:
            try:
                ref = JobRef.parse(text)
            except BadInput as fault:
                diagnostics.error(f"{field}: {fault.message}")
                continue
            if (ref.kind, ref.scope) != (KIND, region):
                diagnostics.error(f"{field}: {text} is not a job of {KIND}:{region}, and Batch waits only for those")
                continue
            job_id = ref.id
        if not _JOB_ID.fullmatch(job_id):
            diagnostics.error(f'{field}: "{text}" is neither a job reference nor a Batch job id')
        waits_for.append({"jobId": job_id, **kind})
    return waits_for


def _submit(draft: Draft, choice: DefinitionChoice) -> dict[str, Any]:
    job, overrides = draft.job, _overrides(draft.job, choice)
    submit: dict[str, Any] = {
        "jobDefinition": choice.job_definition,
        "jobName": draft.name,
        "jobQueue": draft.target.queue_arn,
        "tags": dict(draft.tags),
    }
    if job.nodes > 1:
        submit["nodeOverrides"] = nodes.overrides(job.nodes, overrides)
    else:
        submit["containerOverrides"] = overrides
    if job.tasks > 1:
        submit["arrayProperties"] = {"size": job.tasks}
    if draft.depends_on:
        submit["dependsOn"] = draft.depends_on
    if strategy := retries.of_job(job.retries, job.lost_retries):
        submit["retryStrategy"] = strategy
    if job.timeout_s is not None:
        submit["timeout"] = {"attemptDurationSeconds": job.timeout_s}
    if job.aws_batch and job.aws_batch.share_identifier is not None:
        submit["shareIdentifier"] = job.aws_batch.share_identifier
        submit["schedulingPriorityOverride"] = job.aws_batch.scheduling_priority or shares.PRIORITY
    return submit


def _overrides(job: Job, choice: DefinitionChoice) -> dict[str, Any]:
    """Include the size even if the definition has the same, so that the request is complete."""
    own = {name: value for name, value in job.env.items() if name not in containers.ASSIGNED}
    several = nodes.environment(job.nodes, KIND)
    merged = own | tasks.environment(job, KIND) | several | sweep_tasks.environment(job)
    overrides: dict[str, Any] = {
        "environment": [{"name": name, "value": merged[name]} for name in sorted(merged)],
        "resourceRequirements": definition.requirements(choice.size),
    }
    if job.command:
        overrides["command"] = sweep_tasks.command(job, job.command, KIND)
    return overrides
