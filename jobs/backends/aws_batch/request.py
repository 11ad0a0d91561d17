"""A job as the requests that AWS Batch will get. Pure; nothing here knows boto3."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from accel.contract import variables
from accel.contract.targets import AwsBatchTarget
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.errors import BadInput
from accel.rules import Finding, under
from accel.rules.aws import definitions, jobs, shares
from accel.rules.aws import retries as aws_retries
from accel.rules.aws import types as aws_types
from accel.rules.jobs import containers, image_cuda, launchers, placeholders

from ...model import sweep_tasks
from ...model.job import Job, unused_blocks
from ...model.keys import content_hash
from ..base import JobRef, Request
from . import capacity, definition, labels, nodes, retries
from .definition import DefinitionChoice

KIND = "aws-batch"
ONE_MACHINE_ONLY = (
    "the target has no claim table: submitting the same key again is safe on this machine only; from "
    "another one it may make a second job"
)

_JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:\d+)?")


def render(job: Job, name: str, key: str, target_name: str, target: AwsBatchTarget) -> Request:
    """The request for a job. Raises BadInputs with every field that cannot be honoured."""
    diagnostics = Diagnostics(
        [*labels.faults(job.labels, key), *_unsupported(job)],
        [*unused_blocks(job, KIND), *sweep_tasks.cap_warnings(job, KIND)],
        name_of=capacity.field_name,
    )
    depends_on = _dependencies(job, target.region, diagnostics)
    choice = definition.choose(job, target, diagnostics)
    environment = dict(job.env)
    if choice:
        diagnostics.warnings += choice.warnings
        capacity.check(job, choice.size, target, diagnostics)
        findings = [*nodes.check(job, choice.size, target), *_container_findings(job, choice, target)]
        diagnostics.add(findings)
        environment = _without_dropped(environment, findings)
    array_size = job.tasks if job.tasks > 1 else None
    found = jobs.job(name=name, array_size=array_size, depends_on=depends_on, tags=_tags(job, key, target))
    found += _shares(job, target) + aws_retries.counts(job.retries, job.lost_retries)
    if choice:
        submit = _submit(job, name, key, target, choice, environment, depends_on)
        found += jobs.request_size(submit, exports=bool(job.sweep and job.sweep.shell))
        body: dict[str, Any] = {"register": choice.register, "submit": submit}
    else:
        submit, body = {}, {}
    diagnostics.add(found)
    diagnostics.raise_errors()
    if target.claim_table is None:
        diagnostics.warning(ONE_MACHINE_ONLY)
    submit["tags"][labels.SPEC] = spec_hash(body)
    return Request(KIND, target_name, name, key, body, tuple(diagnostics.warnings))


def spec_hash(body: Mapping[str, Any]) -> str:
    """SHA-256 of what will be sent, without its own place in the tags and the stack's mark: what a version sent that
    did not mark its jobs is the same job."""
    submit = dict(body["submit"])
    submit["tags"] = {name: value for name, value in submit["tags"].items() if name not in (labels.SPEC, labels.STACK)}
    return content_hash({**body, "submit": submit})


def _unsupported(job: Job) -> list[str]:
    """Fields that Batch cannot honour, with the reason."""
    faults: list[str] = []
    if job.parallelism is not None and job.parallelism < job.tasks:
        faults.append(
            f"parallelism: {job.parallelism} of {job.tasks} tasks: AWS Batch cannot cap an array; use a "
            "queue whose environments have a lower max_vcpus"
        )
    faults += [f"timeout_s: {finding.text}" for finding in aws_retries.timeout(job.timeout_s)]
    faults += [f"command[{i}]: is empty, which AWS Batch does not take" for i, arg in enumerate(job.command) if not arg]
    return faults


def _shares(job: Job, target: AwsBatchTarget) -> list[Finding]:
    own = job.aws_batch
    identifier, priority = (own.share_identifier, own.scheduling_priority) if own else (None, None)
    return under("aws_batch", shares.job(shares=target.shares, identifier=identifier, priority=priority))


def _dependencies(job: Job, region: str, diagnostics: Diagnostics) -> list[dict[str, str]]:
    """References of the same region, and raw Batch job ids, each with its type."""
    found: list[dict[str, str]] = []
    for i, entry in enumerate(job.aws_batch.depends_on if job.aws_batch else ()):
        field, text, kind = f"aws_batch.depends_on[{i}]", entry.job, {"type": entry.type} if entry.type else {}
        if text is None:
            found.append(kind)
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
        found.append({"jobId": job_id, **kind})
    return found


def _container_findings(job: Job, choice: DefinitionChoice, target: AwsBatchTarget) -> list[Finding]:
    size = choice.size
    found = definitions.size(vcpus=size.vcpus, memory_mib=size.memory_mib, gpus=size.gpus, shm_mib=choice.shm_mib)
    found += containers.aws_environment(job.env, size.gpus)
    found += launchers.check(job.command, job.env, launchers.Shape(job.nodes, size.gpus))
    # A local image is a folder, which no push changes.
    if job.image and not job.image.startswith("local/"):
        found += containers.image(job.image) + placeholders.account("image", job.image)
        found += placeholders.value("image", job.image)
    image = job.image or choice.image
    if image and size.gpus and image_cuda.version_in_name(image):
        types = [name for environment in target.environments for name in environment.instance_types]
        found += image_cuda.image(image, aws_types.gpus(types))
    return found


def _without_dropped(environment: dict[str, str], findings: Iterable[Finding]) -> dict[str, str]:
    """Return the environment without the variables that a rule leaves out."""
    dropped = {each.field.removeprefix("env.") for each in findings if _drops_variable(each)}
    return {name: value for name, value in environment.items() if name not in dropped}


def _drops_variable(finding: Finding) -> bool:
    return finding.severity == "translate" and finding.field.startswith("env.")


def _tags(job: Job, key: str, target: AwsBatchTarget) -> dict[str, str]:
    own = {labels.JOB: job.name, labels.KEY: key, labels.STACK: target.definition_prefix}
    # As long as the hash that takes its place, so that the request's size is known.
    return dict(sorted({**job.labels, **own, labels.SPEC: "0" * 64}.items()))


def _submit(
    job: Job,
    name: str,
    key: str,
    target: AwsBatchTarget,
    choice: DefinitionChoice,
    environment: dict[str, str],
    depends_on: list[dict[str, str]],
) -> dict[str, Any]:
    overrides = _overrides(job, choice, environment)
    submit: dict[str, Any] = {
        "jobDefinition": choice.job_definition,
        "jobName": name,
        "jobQueue": target.queue_arn,
        "tags": _tags(job, key, target),
    }
    if job.nodes > 1:
        submit["nodeOverrides"] = nodes.overrides(job.nodes, overrides)
    else:
        submit["containerOverrides"] = overrides
    if job.tasks > 1:
        submit["arrayProperties"] = {"size": job.tasks}
    if depends_on:
        submit["dependsOn"] = depends_on
    if strategy := retries.of_job(job.retries, job.lost_retries):
        submit["retryStrategy"] = strategy
    if job.timeout_s is not None:
        submit["timeout"] = {"attemptDurationSeconds": job.timeout_s}
    if job.aws_batch and job.aws_batch.share_identifier is not None:
        submit["shareIdentifier"] = job.aws_batch.share_identifier
        submit["schedulingPriorityOverride"] = job.aws_batch.scheduling_priority or shares.PRIORITY
    return submit


def _overrides(job: Job, choice: DefinitionChoice, environment: dict[str, str]) -> dict[str, Any]:
    """Command, environment and size; the size also where it is the definition's, so that a request has it."""
    # Batch sets the index variable in the tasks of an array only.
    index_from = variables.INDEX_VARIABLE[KIND] if job.tasks > 1 else variables.TASK_INDEX
    ours = {
        variables.JOB_NAME: job.name,
        variables.TASK_COUNT: str(job.tasks),
        variables.INDEX_FROM: index_from,
    }
    if job.tasks == 1:
        ours[variables.TASK_INDEX] = "0"
    merged = environment | ours | nodes.environment(job.nodes, KIND) | sweep_tasks.environment(job)
    overrides: dict[str, Any] = {
        "environment": [{"name": name, "value": merged[name]} for name in sorted(merged)],
        "resourceRequirements": definition.requirements(choice.size),
    }
    if job.command:
        overrides["command"] = sweep_tasks.command(job, job.command, KIND)
    return overrides
