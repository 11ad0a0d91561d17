"""A job once more, from what Batch says of it."""

from collections.abc import Callable, Sequence
from typing import Any

from accel.clouds.aws.clients import Clients
from accel.clouds.aws.errors import asking
from accel.contract.targets import AwsBatchTarget
from accel.contract.variables import INDEX_FROM, RESERVED_PREFIXES, TASK_INDEX
from accel.diagnostics.errors import BadInput, BadInputs, NotFound
from accel.rules.aws import jobs

from ...model import sweep_tasks
from ...model.keys import NAMED_DIGITS, platform_name
from ..base import JobRef, Request
from . import labels
from .lookup import part, parts
from .request import KIND, ONE_MACHINE_ONLY, spec_hash
from .status import detail, node_count

COPIED = ("arrayProperties", "parameters", "propagateTags", "retryStrategy", "shareIdentifier", "timeout")
"""What DescribeJobs says in the words of SubmitJob."""


def again(
    clients: Clients,
    ref: JobRef,
    key: str,
    target_of: Callable[[str], str | None],
    target: AwsBatchTarget | None,
    tasks: Sequence[int] | None = None,
) -> Request:
    """The request for the same job under a new key; for some of its `tasks` alone, of a sweep.

    Raises NotFound where Batch has forgotten the job or its definition, BadInput for a task of an array.
    """
    for mark, whole in ((":", "a task of an array; give the array"), ("#", "a node of a job; give the job")):
        if mark in ref.id:
            raise BadInput(f"{ref}: is {whole}, {ref.id.partition(mark)[0]}")
    job = detail(clients, ref)
    old_tags = part(job, "tags")
    job_name = old_tags.get(labels.JOB) or job["jobName"][: 128 - NAMED_DIGITS - 1]
    name = platform_name(job_name, key)
    marks = {labels.JOB: job_name, labels.KEY: key} | ({labels.STACK: target.definition_prefix} if target else {})
    definition, warnings = _definition(clients, job["jobDefinition"])
    submit: dict[str, Any] = {field: job[field] for field in COPIED if job.get(field)}
    if "arrayProperties" in submit:
        submit["arrayProperties"] = {"size": submit["arrayProperties"]["size"]}
    if job.get("schedulingPriority") is not None and "shareIdentifier" in submit:
        submit["schedulingPriorityOverride"] = job["schedulingPriority"]
    if job.get("dependsOn"):
        warnings.append("the jobs that it waited for are left out")
    submit |= {
        **_as_it_was(job),
        "jobDefinition": definition,
        "jobName": name,
        "jobQueue": job["jobQueue"],
        "tags": dict(sorted({**old_tags, **marks, labels.SPEC: ""}.items())),
    }
    if tasks is not None:
        _narrow(submit, tasks, ref)
    body: dict[str, Any] = {"register": None, "submit": dict(sorted(submit.items()))}
    if large := [f"{each.field}: {each.text}" for each in jobs.request_size(submit) if each.severity == "reject"]:
        raise BadInputs(large, "submit the job file again")
    body["submit"]["tags"][labels.SPEC] = spec_hash(body)
    if target is None or target.claim_table is None:
        warnings.append(ONE_MACHINE_ONLY)
    return Request(KIND, target_of(job["jobQueue"]) or job["jobQueue"], name, key, body, tuple(warnings))


def _narrow(submit: dict[str, Any], tasks: Sequence[int], ref: JobRef) -> None:
    """Of one task Batch makes no array, and then tells it no index."""
    overrides = part(submit, "containerOverrides")
    env = sweep_tasks.narrowed({each["name"]: each["value"] for each in parts(overrides, "environment")}, tasks, ref)
    submit.pop("arrayProperties", None)
    if len(tasks) > 1:
        submit["arrayProperties"] = {"size": len(tasks)}
    else:
        env |= {INDEX_FROM: TASK_INDEX, TASK_INDEX: "0"}
    environment = [{"name": name, "value": env[name]} for name in sorted(env)]
    submit["containerOverrides"] = {**overrides, "environment": environment}


def _definition(clients: Clients, arn: str) -> tuple[str, list[str]]:
    """The same revision while it is active, else the latest of its name."""
    family = arn.rpartition(":")[0]
    name = family.rpartition("/")[2]
    with asking(f"DescribeJobDefinitions {name}"):
        answer = clients.batch.describe_job_definitions(jobDefinitionName=name, status="ACTIVE")
    active = [each["jobDefinitionArn"] for each in parts(answer, "jobDefinitions")]
    if arn in active:
        return arn, []
    if not active:
        raise NotFound(f"job definition {name}: no revision is active any more", "submit the job file again")
    latest = max(active, key=lambda each: int(each.rpartition(":")[2]))
    return latest, [f"revision {arn.rpartition(':')[2]} of {name} is gone; {latest.rpartition(':')[2]} is used"]


def _as_it_was(job: dict[str, Any]) -> dict[str, Any]:
    """The overrides that make the containers of the definition those of the job."""
    count = node_count(job)
    if not count:
        return {"containerOverrides": _overrides(part(job, "container"))}
    ranges = [
        {"targetNodes": each["targetNodes"], "containerOverrides": _overrides(part(each, "container"))}
        for each in parts(part(job, "nodeProperties"), "nodeRangeProperties")
    ]
    for each in ranges:
        each["containerOverrides"].pop("resourceRequirements", None)  # the definition's: no submit changes them
    return {"nodeOverrides": {"nodePropertyOverrides": ranges}}


def _overrides(container: dict[str, Any]) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    environment = [
        each
        for each in parts(container, "environment")
        if each["name"].startswith(RESERVED_PREFIXES[0]) or not each["name"].startswith(RESERVED_PREFIXES)
    ]
    if environment:
        overrides["environment"] = sorted(environment, key=lambda each: each["name"])
    if container.get("resourceRequirements"):
        overrides["resourceRequirements"] = sorted(container["resourceRequirements"], key=lambda each: each["type"])
    if container.get("command"):
        overrides["command"] = container["command"]
    return overrides
