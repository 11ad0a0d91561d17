"""Calls that change jobs: SubmitJob, resubmission and TerminateJob. claims/submit.py says how one key makes one job."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from accel.clouds.aws.batch_jobs import describe, pages
from accel.clouds.aws.clients import Client, Clients
from accel.clouds.aws.errors import PERMISSION, asking
from accel.clouds.aws.responses import structure, structures
from accel.clouds.backoff import Lease, now, patiently
from accel.contract import stop
from accel.contract.targets import AwsBatchTarget
from accel.contract.variables import INDEX_FROM, RESERVED_PREFIXES, TASK_INDEX
from accel.diagnostics.errors import BadInput, BadInputs, CloudRefused, CloudSilent, NotFound, OverLimit, Throttled
from accel.rules.aws import jobs

from ...model import sweep_tasks
from ...model.keys import NAMED_DIGITS, platform_name
from ..base import JobRef, Request
from ..claims import submit as submission
from ..claims.dynamodb import TableClaims
from ..claims.files import FileClaims
from ..claims.platform import ClaimedJob, Forgetting, Pace
from . import labels
from .checks import ONE_MACHINE_ONLY
from .labels import KIND
from .request import spec_hash
from .status import PHASES, detail, node_count

FORGOTTEN_S = 6 * 86_400
"""Batch lists an ended job for seven days at least; after six, an empty listing proves nothing. Source:
https://docs.aws.amazon.com/batch/latest/userguide/job_states.html"""
FORGOTTEN = (
    "more than six days ago and no job is recorded; AWS Batch may have forgotten the job, "
    "so whether it ran is not known"
)
REGISTRATIONS = 3
REGISTERED_S = 60

TASK_ALONE = (
    "the submit policy ends whole jobs only, since AWS has no tags of a single task: cancel the whole job, or ask for "
    "batch:TerminateJob on job/*:* (docs/security.md)"
)
log = logging.getLogger("accel.jobs.aws_batch")


def submit(request: Request, clients: Clients, target: AwsBatchTarget | None) -> JobRef:
    """Claim the key in the stack's table, if it has one. Raise OverLimit if a budget has stopped the stack, BadInput if
    the key belongs to another job, NoCredentials and CloudRefused if nothing was created, CloudSilent if that is
    unknown: submit the same key again."""
    table = target.claim_table if target else None
    if target and table and target.budget_stops:
        refuse(clients, table)
    claims = TableClaims(clients, table) if table else FileClaims(request.body["submit"]["jobQueue"])
    job_id, there = submission.submit(_Batch(request, clients), claims)
    return JobRef(KIND, clients.region, job_id, there)


class _Batch:
    """AWS Batch, for one request. The job's name holds the key's digits, its tags the key."""

    def __init__(self, request: Request, clients: Clients) -> None:
        self.name = request.name
        self.key = request.key
        self._register: dict[str, Any] | None = request.body["register"]
        self._submit: dict[str, Any] = request.body["submit"]
        self.spec: str = self._submit["tags"][labels.SPEC]
        self._clients = clients
        self.pace: Pace = clients.timing
        self.forgetting: Forgetting | None = Forgetting(FORGOTTEN_S, FORGOTTEN)

    def turn(self) -> None:
        self._clients.submits.turn()

    def prepare(self, lease: Lease) -> None:
        """Register the job's own definition unless it exists, once for the jobs of a minute. Two clients may register
        it at once: that makes two revisions with the same content, either of which will do."""
        if self._register is None:
            return
        name, known = self._register["jobDefinitionName"], self._clients.registered
        with self._clients.registering[name]:
            if now() - known.get(name, -REGISTERED_S) >= REGISTERED_S:
                self._register_once(name, lease)
                known[name] = now()

    def send(self) -> str:
        with asking(f"SubmitJob {self.name}"):
            answer = self._clients.batch_once.submit_job(**self._submit)
        job_id = answer.get("jobId")
        if not isinstance(job_id, str) or not job_id:
            raise CloudSilent(f"SubmitJob {self.name}: the answer has no job id")
        return job_id

    def listed(self) -> list[ClaimedJob]:
        return find_jobs(self._clients.batch, self._submit["jobQueue"], self.name, self.key)

    def stop(self, job_id: str, reason: str) -> None:
        _terminate(self._clients.batch, job_id, reason)

    def _register_once(self, name: str, lease: Lease) -> None:
        for attempt in range(REGISTRATIONS):
            with asking(f"DescribeJobDefinitions {name}"):
                answer = self._clients.batch.describe_job_definitions(jobDefinitionName=name, status="ACTIVE")
            if answer.get("jobDefinitions"):
                return
            try:
                log.debug("registering")
                patiently(self._register_definition, lease, self.pace.call_s)
                log.debug("registered")
                return
            except Throttled:
                raise
            except CloudSilent:
                if attempt + 1 == REGISTRATIONS:
                    raise

    def _register_definition(self) -> None:
        assert self._register is not None
        with asking(f"RegisterJobDefinition {self._register['jobDefinitionName']}"):
            answer = self._clients.batch_once.register_job_definition(**self._register)
        if not answer.get("jobDefinitionArn"):
            raise CloudSilent("RegisterJobDefinition: the answer has no ARN")


def find_jobs(batch: Client, queue: str, name: str, key: str) -> list[ClaimedJob]:
    """Return the jobs of a queue with this name (ListJobs compares without case) and this key in their tags."""
    filters = [{"name": "JOB_NAME", "values": [name]}]
    summaries = (job for page in pages(batch, jobQueue=queue, filters=filters) for job in page)
    ids = [job["jobId"] for job in summaries if job.get("jobName") == name]
    details = describe(batch, ids) if ids else []
    return [
        ClaimedJob(int(job.get("createdAt", 0)), job["jobId"], structure(job, "tags").get(labels.SPEC, ""))
        for job in details
        if structure(job, "tags").get(labels.KEY) == key
    ]


LOOKED_S = 5
"""Interval of reads: a command may submit thousands of jobs, and the queues are disabled soon after a stop."""


def refuse(clients: Clients, table: str) -> None:
    """Raise OverLimit if the stack is stopped. Cost: one GetItem every few seconds."""
    if now() - clients.looked.get(table, -LOOKED_S) < LOOKED_S:
        return
    with asking(f"claim table {table}: GetItem"):
        answer = clients.dynamodb.get_item(TableName=table, Key={stop.TABLE_KEY: {"S": stop.KEY}}, ConsistentRead=True)
    item: dict[str, Any] = answer.get("Item") or {}
    if stop.STOPPED in item:
        raise OverLimit(
            f"the stack accepts no new jobs: {item[stop.STOPPED]['S']}",
            "`stacks budget status` shows what was stopped, `stacks budget resume` undoes the stop",
        )
    clients.looked[table] = now()


COPIED = ("arrayProperties", "parameters", "propagateTags", "retryStrategy", "shareIdentifier", "timeout")
"""Fields that DescribeJobs and SubmitJob have in common."""


def resubmit_request(
    clients: Clients,
    ref: JobRef,
    key: str,
    target_of: Callable[[str], str | None],
    target: AwsBatchTarget | None,
    tasks: Sequence[int] | None = None,
) -> Request:
    """Raise NotFound if Batch has forgotten the job or its definition, BadInput for a single task or node."""
    for mark, whole in ((":", "a task of an array; give the array"), ("#", "a node of a job; give the job")):
        if mark in ref.id:
            raise BadInput(f"{ref}: is {whole}, {ref.id.partition(mark)[0]}")
    job = detail(clients, ref)
    old_tags = structure(job, "tags")
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
    """Make no array of a single task: Batch makes none, and sets no index."""
    overrides = structure(submit, "containerOverrides")
    env = sweep_tasks.narrow_environment(
        {each["name"]: each["value"] for each in structures(overrides, "environment")}, tasks, ref
    )
    submit.pop("arrayProperties", None)
    if len(tasks) > 1:
        submit["arrayProperties"] = {"size": len(tasks)}
    else:
        env |= {INDEX_FROM: TASK_INDEX, TASK_INDEX: "0"}
    environment = [{"name": name, "value": env[name]} for name in sorted(env)]
    submit["containerOverrides"] = {**overrides, "environment": environment}


def _definition(clients: Clients, arn: str) -> tuple[str, list[str]]:
    family = arn.rpartition(":")[0]
    name = family.rpartition("/")[2]
    with asking(f"DescribeJobDefinitions {name}"):
        answer = clients.batch.describe_job_definitions(jobDefinitionName=name, status="ACTIVE")
    active = [each["jobDefinitionArn"] for each in structures(answer, "jobDefinitions")]
    if arn in active:
        return arn, []
    if not active:
        raise NotFound(f"job definition {name}: no revision is active any more", "submit the job file again")
    latest = max(active, key=lambda each: int(each.rpartition(":")[2]))
    return latest, [f"revision {arn.rpartition(':')[2]} of {name} is gone; {latest.rpartition(':')[2]} is used"]


def _as_it_was(job: dict[str, Any]) -> dict[str, Any]:
    """Turn the definition's containers into those of the job."""
    count = node_count(job)
    if not count:
        return {"containerOverrides": _overrides(structure(job, "container"))}
    ranges = [
        {"targetNodes": each["targetNodes"], "containerOverrides": _overrides(structure(each, "container"))}
        for each in structures(structure(job, "nodeProperties"), "nodeRangeProperties")
    ]
    for each in ranges:
        each["containerOverrides"].pop("resourceRequirements", None)  # from the definition, which no submit can change
    return {"nodeOverrides": {"nodePropertyOverrides": ranges}}


def _overrides(container: dict[str, Any]) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    environment = [
        each
        for each in structures(container, "environment")
        if each["name"].startswith(RESERVED_PREFIXES[0]) or not each["name"].startswith(RESERVED_PREFIXES)
    ]
    if environment:
        overrides["environment"] = sorted(environment, key=lambda each: each["name"])
    if container.get("resourceRequirements"):
        overrides["resourceRequirements"] = sorted(container["resourceRequirements"], key=lambda each: each["type"])
    if container.get("command"):
        overrides["command"] = container["command"]
    return overrides


def cancel(clients: Clients, ref: JobRef, reason: str) -> None:
    if not PHASES[detail(clients, ref)["status"]].ended:
        _terminate(clients.batch, ref.id, reason or "cancelled")


def _terminate(batch: Client, job_id: str, reason: str) -> None:
    """Stop a job in any state: TerminateJob also cancels jobs that have not started. Source:
    https://docs.aws.amazon.com/batch/latest/APIReference/API_TerminateJob.html"""
    try:
        with asking(f"TerminateJob {job_id}"):
            batch.terminate_job(jobId=job_id, reason=reason[:1024])
    except CloudRefused as refused:
        if ":" in job_id and refused.hint == PERMISSION:
            raise CloudRefused(refused.message, TASK_ALONE) from refused
        raise
