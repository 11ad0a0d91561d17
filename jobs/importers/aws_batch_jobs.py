"""Translation of a job that `aws batch describe-jobs` prints into a job file for a new run of it."""

from collections.abc import Mapping

from . import aws_batch_definitions
from .aws_batch_fields import array, fair_share
from .fields import RequestFields, job_name
from .outcome import ImportResult
from .reading import Json

PAST = (
    *("jobArn", "jobId", "status", "statusReason", "createdAt", "startedAt", "stoppedAt", "isCancelled"),
    *("isTerminated", "attempts", "eksAttempts", "arrayProperties.statusSummary"),
    *("arrayProperties.statusSummaryLastUpdatedAt", "ResponseMetadata"),
)
PAST_OF_CONTAINER = (*("exitCode", "reason", "logStreamName", "taskArn", "containerInstanceArn", "networkInterfaces"),)
KNOWN = (
    *aws_batch_definitions.KNOWN,
    *("jobs", "jobName", "jobQueue", "jobDefinition", "shareIdentifier", "arrayProperties", "size", "index"),
    *("statusSummary", "statusSummaryLastUpdatedAt", "nodeDetails", "nodeIndex", "isMainNode"),
    *(field for field in (*PAST, *PAST_OF_CONTAINER) if "." not in field),
)
"""Fields of a described job. Source: botocore's model of JobDetail."""


def import_described_job(given: RequestFields, chosen: Mapping[str, str]) -> ImportResult:
    """Translate a described job into a job. `chosen` holds the values of its parameters."""
    report = given.report
    values: Json = {"name": job_name(given, "jobName")}
    place = aws_batch_definitions.import_properties(given, chosen, values, "container")
    past = [f"{base}.{each}" for base in (place.container, place.task) for each in PAST_OF_CONTAINER] if place else []
    for path in (*PAST, *past):
        given.left_out(path, "describes the earlier run")
    array(given, values)
    if (index := given.whole("arrayProperties.index")) is not None:
        why = f"is one task of an array; describe the array job, whose id does not end in :{index}"
        report.refuse(given.name("arrayProperties.index"), why)
    for path in given.paths("nodeDetails"):
        report.refuse(
            given.name(path), "is one node of a job of several; describe that job, whose id does not contain #"
        )
    for path in given.paths("dependsOn"):
        why = "is of an earlier job; write it into aws_batch.depends_on if the new job waits for it too"
        report.decide(given.name(path), why, is_open=False)
    block: Json = {}
    fair_share(given, block, "schedulingPriority")
    if block:
        values["aws_batch"] = block
    given.left_out("jobDefinition", "the job file has its image, command and resources")
    found = ImportResult(report, {}, values)
    found.queue = given.text("jobQueue") or ""
    given.keep_value("jobQueue", "the queue of the target")
    report.close(KNOWN)
    return found
