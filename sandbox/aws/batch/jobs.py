"""SubmitJob, and the operations that show, list and stop jobs."""

import json
import uuid
from typing import Any

from . import containers, definitions, nodes, policies, queues
from .lifecycle import STATES, stop
from .state import Batch, BatchError, Document, Job, page, require, short, valid_name

RESULTS = ("containerInstanceArn", "taskArn", "logStreamName", "exitCode", "reason", "networkInterfaces")
SUMMARY = (
    "jobArn", "jobId", "jobName", "createdAt", "status", "statusReason", "startedAt", "stoppedAt",
    "jobDefinition", "shareIdentifier", "isCancelled", "isTerminated",
)  # fmt: skip


def _check(batch: Batch, request: Document, definition: Document) -> None:
    valid_name(request, "jobName")
    size = len(json.dumps(request))
    require(size <= 30 * 1024, f"the request has {size} bytes, SubmitJob takes at most 30720")
    definitions.check_limits(request)
    multinode = definition["type"] == "multinode"
    wrong = ["containerOverrides", "arrayProperties"] if multinode else ["nodeOverrides"]
    for key in (*wrong, "eksPropertiesOverride", "ecsPropertiesOverride"):
        require(key not in request, f"{key} is not applicable to a job definition of type {definition['type']}")
    array = request.get("arrayProperties", {}).get("size")
    require(array is None or 2 <= array <= 10_000, f"array size {array} must be 2 to 10000")
    depends = request.get("dependsOn", [])
    require(len(depends) <= 20, f"dependsOn takes at most 20 jobs, has {len(depends)}")
    for row in depends:
        require("jobId" in row or row.get("type") == "SEQUENTIAL", "dependsOn needs a jobId")
        require("type" not in row or array, f"a {row.get('type')} dependency needs an array job")
        if "jobId" in row:
            require(row["jobId"] in batch.jobs, f"dependsOn: job {row['jobId']} does not exist")


def submit(batch: Batch, request: Document) -> Document:
    """Answer SubmitJob. It is not idempotent: the same request twice is two jobs, as on AWS."""
    queue = queues.find(batch, request["jobQueue"])
    require(queue.document["state"] == "ENABLED", f"JobQueue {request['jobQueue']} is in DISABLED state.")
    require(queue.document["status"] in ("VALID", "UPDATING"), f"JobQueue {request['jobQueue']} is not valid.")
    definition = definitions.find(batch, request["jobDefinition"])
    _check(batch, request, definition)
    overrides = request.get("containerOverrides", {}) or request.get("nodeOverrides", {})
    parameters = {**definition.get("parameters", {}), **request.get("parameters", {})}
    multinode = definition["type"] == "multinode"
    properties = nodes.overridden(definition, request) if multinode else {}
    first = properties["nodeRangeProperties"][0]["container"] if multinode else definition["containerProperties"]
    container = first if multinode else containers.merge_overrides(first, overrides, parameters)
    job_id = str(uuid.uuid4())
    document: Document = {
        "jobArn": batch.arn("job", job_id),
        "jobName": request["jobName"],
        "jobId": job_id,
        "jobQueue": queue.document["jobQueueArn"],
        "status": "SUBMITTED",
        "attempts": [],
        "createdAt": batch.world.ms(),
        "retryStrategy": {
            "attempts": 1,
            "evaluateOnExit": [],
            **(request.get("retryStrategy") or definition.get("retryStrategy", {})),
        },
        "dependsOn": request.get("dependsOn", []),
        "jobDefinition": definition["jobDefinitionArn"],
        "parameters": parameters,
        "propagateTags": request.get("propagateTags", definition.get("propagateTags", False)),
        "platformCapabilities": definition.get("platformCapabilities", ["EC2"]),
        **policies.check_job(queue, request, definition),
    }
    if timeout := request.get("timeout") or definition.get("timeout"):
        document["timeout"] = timeout
    if array := request.get("arrayProperties"):
        document["arrayProperties"] = {"size": array["size"], "statusSummary": dict.fromkeys(STATES, 0)}
    job = Job(queue, document, container, containers.needs(container), overrides)
    batch.jobs[job_id] = queue.jobs[job_id] = job
    if multinode:
        document["nodeProperties"] = properties
        nodes.make(batch, job)
    batch.submitted.append(job)
    batch.tag_resource(document["jobArn"], request.get("tags", {}))
    batch.world.lock.notify_all()
    return {key: document[key] for key in ("jobArn", "jobName", "jobId")}


def _last(job: Job) -> Document:
    if job.run:
        return job.run.container
    return job.document["attempts"][-1]["container"] if job.document["attempts"] else {}


def describe(batch: Batch, request: Document) -> Document:
    require(len(request["jobs"]) <= 100, "DescribeJobs takes at most 100 jobs")
    found: list[Document] = []
    for job_id in request["jobs"]:
        if job := batch.jobs.get(job_id.rpartition("/")[2]):
            result = {key: value for key, value in _last(job).items() if key in RESULTS}
            container = {"networkInterfaces": [], **job.container, **result}
            tags = batch.list_tags_for_resource((job.whole or job.parent or job).document["jobArn"])
            own = {} if job.nodes else {"container": container}
            found.append({**job.document, **own, "tags": tags})
    return {"jobs": found}


def _summary(job: Job) -> Document:
    row: Document = {key: job.document[key] for key in SUMMARY if key in job.document}
    result = {key: value for key, value in _last(job).items() if key in ("exitCode", "reason")}
    if result:
        row["container"] = result
    if array := job.document.get("arrayProperties"):
        row["arrayProperties"] = {key: array[key] for key in ("size", "index") if key in array}
    if job.nodes or job.whole:
        count = len((job.whole or job).nodes)
        row["nodeProperties"] = {"numNodes": count, **job.document.get("nodeDetails", {})}
    return row


def _matches(row: Document, name: str, value: str) -> bool:
    """Apply one filter of ListJobs, as KeyValuesPair and ListJobsRequest of botocore's batch model describe it."""
    if name in ("BEFORE_CREATED_AT", "AFTER_CREATED_AT"):
        require(value.isdigit(), f"{name} takes milliseconds, not {value!r}")
        before = name == "BEFORE_CREATED_AT"
        return row["createdAt"] < int(value) if before else row["createdAt"] > int(value)
    if name == "JOB_DEFINITION" and value.startswith("arn:"):
        return row["jobDefinition"] == value
    text = {
        "JOB_NAME": row["jobName"].lower(),
        "JOB_DEFINITION": short(row["jobDefinition"]).partition(":")[0],
        "SHARE_IDENTIFIER": row.get("shareIdentifier", ""),
    }[name]
    value = value.lower() if name == "JOB_NAME" else value
    return text.startswith(value[:-1]) if value.endswith("*") else text == value


FILTERS = ("JOB_NAME", "JOB_DEFINITION", "BEFORE_CREATED_AT", "AFTER_CREATED_AT", "SHARE_IDENTIFIER")


def list_jobs(batch: Batch, request: Document) -> Document:
    """Answer ListJobs of a queue (newest first), an array or a multi-node job; RUNNING jobs by default."""
    of = [request[key] for key in ("arrayJobId", "multiNodeJobId", "jobQueue") if key in request]
    require(len(of) == 1, "one of jobQueue, arrayJobId and multiNodeJobId is required")
    filters: list[Any] = request.get("filters", [])
    require(len(filters) <= 1, "Only one filter can be used at a time")
    if "jobQueue" not in request:
        parent = batch.jobs.get(of[0])
        jobs, filters = ((parent.nodes or parent.children) if parent else []), []
    else:
        jobs = list(reversed(queues.find(batch, request["jobQueue"]).jobs.values()))
    status = request.get("jobStatus", None if filters else "RUNNING")
    for entry in filters:
        require(entry.get("name") in FILTERS, f"filter {entry.get('name')!r} is not one of {', '.join(FILTERS)}")
        status = status if entry["name"] == "SHARE_IDENTIFIER" else None
        jobs = [job for job in jobs if any(_matches(job.document, entry["name"], value) for value in entry["values"])]
    rows = [job for job in jobs if status in (None, job.status)]
    found, token = page([{"jobId": job.id, "job": job} for job in rows], "jobId", request, 100 if filters else 1000)
    return {"jobSummaryList": [_summary(row["job"]) for row in found], **token}


def _stop(batch: Batch, request: Document, flag: str) -> Document:
    job = batch.jobs.get(request["jobId"])
    if job is None:
        raise BatchError(f"Job {request['jobId']} not found")
    stop(batch, job, request["reason"], flag)
    return {}


OPERATIONS = {
    "SubmitJob": submit,
    "DescribeJobs": describe,
    "ListJobs": list_jobs,
    "CancelJob": lambda batch, request: _stop(batch, request, "isCancelled"),
    "TerminateJob": lambda batch, request: _stop(batch, request, "isTerminated"),
}
