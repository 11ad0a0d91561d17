"""Reads what Batch, the job's log and its registry say, each when it is first asked for."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from ... import outcome
from ..logs import BATCH_GROUP
from ..lookup import part, parts
from .environment import environment
from .facts import Ahead, Environment, Facts, Other, Queue
from .reader import Absent, Reader

Document = Mapping[str, Any]
ECR = re.compile(
    r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.(?:com(?:\.cn)?|eu)/([^:@]+)(?::([^@]+))?(?:@(sha256:\w+))?"
)
ASKED_AT_ONCE = 100


class Gather:
    """Facts of one job. `job`: its JobDetail."""

    def __init__(self, reader: Reader, job: Document, now: float) -> None:
        self._reader = reader
        self._job = job
        self._now = now
        self._queue_detail = cache(self._read_queue)
        self._snapshot = cache(self._read_snapshot)

    def facts(self) -> Facts:
        """Nothing is read yet."""
        facts: list[Facts] = []

        def environments() -> tuple[Environment, ...] | None:
            return self._environments(facts[0])

        facts.append(
            Facts(
                job=self._job,
                region=self._reader.region,
                now=self._now,
                queue=cache(self._queue),
                environments=cache(environments),
                front=cache(self._front),
                active_shares=cache(self._active_shares),
                depends_on=cache(self._depends_on),
                lines=cache(self._lines),
                pull_began=cache(self._pull_began),
                image_exists=cache(self._image_exists),
            )
        )
        return facts[0]

    def _read_queue(self) -> Document | None:
        name = self._job["jobQueue"]
        found = self._reader.ask("batch:DescribeJobQueues", lambda batch: batch.describe_job_queues(jobQueues=[name]))
        rows = parts(found or {}, "jobQueues")
        return rows[0] if rows else None

    def _queue(self) -> Queue | None:
        row = self._queue_detail()
        if row is None:
            return None
        limits = {each["reason"]: int(each["maxTimeSeconds"]) for each in parts(row, "jobStateTimeLimitActions")}
        shares = self._policy(str(row.get("schedulingPolicyArn") or ""))
        reason = str(row.get("statusReason") or "")
        return Queue(row["jobQueueName"], row["state"], str(row.get("status") or ""), reason, shares, limits)

    def _policy(self, arn: str) -> Document | None:
        if not arn:
            return None
        found = self._reader.ask(
            "batch:DescribeSchedulingPolicies", lambda batch: batch.describe_scheduling_policies(arns=[arn])
        )
        rows = parts(found or {}, "schedulingPolicies")
        return part(rows[0], "fairsharePolicy") if rows else {}

    def _environments(self, facts: Facts) -> tuple[Environment, ...] | None:
        row = self._queue_detail()
        if row is None:
            return None
        order = sorted(parts(row, "computeEnvironmentOrder"), key=lambda each: each["order"])
        arns = [each["computeEnvironment"] for each in order]
        found = self._reader.ask(
            "batch:DescribeComputeEnvironments",
            lambda batch: batch.describe_compute_environments(computeEnvironments=arns),
        )
        if found is None:
            return None
        rows = {each["computeEnvironmentArn"]: each for each in parts(found, "computeEnvironments")}
        return tuple(environment(self._reader, rows[arn], facts.size) for arn in arns if arn in rows)

    def _read_snapshot(self) -> Document | None:
        queue = self._job["jobQueue"]
        return self._reader.ask("batch:GetJobQueueSnapshot", lambda batch: batch.get_job_queue_snapshot(jobQueue=queue))

    def _front(self) -> tuple[Ahead, ...] | None:
        snapshot = self._snapshot()
        if snapshot is None:
            return None
        ids = [str(each["jobArn"]).rpartition("/")[2] for each in parts(part(snapshot, "frontOfQueue"), "jobs")]
        known = self._described(ids)
        if known is None:
            return None
        return tuple(
            Ahead(
                one,
                str(known[one].get("jobName", "")) if one in known else "",
                str(known[one].get("shareIdentifier") or "") if one in known else "",
                str(known[one].get("statusReason") or "") if one in known else "",
            )
            for one in ids
        )

    def _active_shares(self) -> int | None:
        """As the snapshot counts them, else those of the jobs that have not ended: a share with such jobs is active."""
        usage = part(part(self._snapshot() or {}, "queueUtilization"), "fairshareUtilization")
        if usage.get("activeShareCount"):
            return int(usage["activeShareCount"])
        shares: set[str] = set()
        for status in ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING"):
            rows = self._reader.pages(
                "batch:ListJobs", "list_jobs", "jobSummaryList", jobQueue=self._job["jobQueue"], jobStatus=status
            )
            if rows is None:
                return None
            shares |= {str(row["shareIdentifier"]) for row in rows if row.get("shareIdentifier")}
        return len(shares) or None

    def _depends_on(self) -> tuple[Other, ...] | None:
        ids = [str(row["jobId"]) for row in parts(self._job, "dependsOn") if row.get("jobId")]
        index = part(self._job, "arrayProperties").get("index")
        pairs = {str(row["jobId"]) for row in parts(self._job, "dependsOn") if row.get("type") == "N_TO_N"}
        ids = [f"{one}:{index}" if one in pairs and index is not None else one for one in ids]
        if index and any(row.get("type") == "SEQUENTIAL" for row in parts(self._job, "dependsOn")):
            ids.append(f"{str(self._job['jobId']).rpartition(':')[0]}:{index - 1}")
        known = self._described(ids)
        if known is None:
            return None
        return tuple(
            Other(one, str(known[one]["jobName"]), str(known[one]["status"])) if one in known else Other(one, "", None)
            for one in ids
        )

    def _described(self, ids: list[str]) -> dict[str, Document] | None:
        """JobDetails by id."""
        if not ids:
            return {}
        asked = ids[:ASKED_AT_ONCE]
        found = self._reader.ask("batch:DescribeJobs", lambda batch: batch.describe_jobs(jobs=asked))
        return None if found is None else {str(row["jobId"]): row for row in parts(found, "jobs")}

    def _lines(self) -> tuple[str, ...] | None:
        """The end of the last attempt's log; none where it has no stream."""
        attempts = parts(self._job, "attempts")
        container = part(self._job, "container")
        stream = part(attempts[-1], "container").get("logStreamName") if attempts else container.get("logStreamName")
        if not stream:
            return ()
        options = part(part(container, "logConfiguration"), "options")
        group = options.get("awslogs-group") or BATCH_GROUP

        def read(logs: Any) -> tuple[str, ...]:
            answer = logs.get_log_events(logGroupName=group, logStreamName=stream, limit=outcome.TAIL)
            return tuple(str(event["message"]) for event in answer["events"])

        try:
            return self._reader.ask("logs:GetLogEvents", read, absent=("ResourceNotFoundException",))
        except Absent:
            return ()

    def _pull_began(self) -> float | None:
        task = str(part(self._job, "container").get("taskArn") or "")
        if task.count("/") != 2:
            return None
        found = self._reader.ask(
            "ecs:DescribeTasks", lambda ecs: ecs.describe_tasks(cluster=task.split("/")[1], tasks=[task])
        )
        rows = parts(found or {}, "tasks")
        if not rows or rows[0].get("pullStoppedAt") or not rows[0].get("pullStartedAt"):
            return None
        return float(rows[0]["pullStartedAt"].timestamp())

    def _image_exists(self) -> bool | None:
        """Whether ECR has the image; None for one of another registry or region."""
        found = ECR.fullmatch(str(part(self._job, "container").get("image") or ""))
        if not found or found[2] != self._reader.region:
            return None
        wanted = {"imageDigest": found[5]} if found[5] else {"imageTag": found[4] or "latest"}
        asked = {"registryId": found[1], "repositoryName": found[3], "imageIds": [wanted]}
        try:
            answer = self._reader.ask(
                "ecr:DescribeImages",
                lambda ecr: ecr.describe_images(**asked),
                absent=("RepositoryNotFoundException", "ImageNotFoundException"),
            )
        except Absent:
            return False
        return None if answer is None else True
