"""Readers of what Batch, the job's log, its registry and its environments' services say, each when first requested."""

import re
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from accel.clouds.aws.reader import Absent, Reader
from accel.clouds.aws.responses import structure, structures
from accel.clouds.aws.roles import role
from accel.clouds.aws.routes import network
from accel.contract.targets import AwsBatchEnvironment
from accel.rules.aws.fit import Size

from ...aws_batch import quota
from ...aws_batch.logs import BATCH_GROUP
from .. import outcome
from .facts import Activity, Ahead, AwsFacts, Environment, Instance, Other, Queue

Document = Mapping[str, Any]
ECR = re.compile(
    r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.(?:com(?:\.cn)?|eu)/([^:@]+)(?::([^@]+))?(?:@(sha256:\w+))?"
)
ASKED_AT_ONCE = 100


class Gather:
    """Source of one job's AwsFacts. `job` is its JobDetail."""

    def __init__(self, reader: Reader, job: Document, now: float) -> None:
        self._reader = reader
        self._job = job
        self._now = now
        self._queue_detail = cache(self._read_queue)
        self._snapshot = cache(self._read_snapshot)

    def facts(self) -> AwsFacts:
        facts: list[AwsFacts] = []

        def environments() -> tuple[Environment, ...] | None:
            return self._environments(facts[0])

        facts.append(
            AwsFacts(
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
                reader=self._reader,
            )
        )
        return facts[0]

    def _read_queue(self) -> Document | None:
        name = self._job["jobQueue"]
        found = self._reader.ask("batch:DescribeJobQueues", lambda batch: batch.describe_job_queues(jobQueues=[name]))
        rows = structures(found or {}, "jobQueues")
        return rows[0] if rows else None

    def _queue(self) -> Queue | None:
        row = self._queue_detail()
        if row is None:
            return None
        limits = {each["reason"]: int(each["maxTimeSeconds"]) for each in structures(row, "jobStateTimeLimitActions")}
        shares = self._policy(str(row.get("schedulingPolicyArn") or ""))
        reason = str(row.get("statusReason") or "")
        return Queue(row["jobQueueName"], row["state"], str(row.get("status") or ""), reason, shares, limits)

    def _policy(self, arn: str) -> Document | None:
        if not arn:
            return None
        found = self._reader.ask(
            "batch:DescribeSchedulingPolicies", lambda batch: batch.describe_scheduling_policies(arns=[arn])
        )
        rows = structures(found or {}, "schedulingPolicies")
        return structure(rows[0], "fairsharePolicy") if rows else {}

    def _environments(self, facts: AwsFacts) -> tuple[Environment, ...] | None:
        row = self._queue_detail()
        if row is None:
            return None
        order = sorted(structures(row, "computeEnvironmentOrder"), key=lambda each: each["order"])
        arns = [each["computeEnvironment"] for each in order]
        found = self._reader.ask(
            "batch:DescribeComputeEnvironments",
            lambda batch: batch.describe_compute_environments(computeEnvironments=arns),
        )
        if found is None:
            return None
        rows = {each["computeEnvironmentArn"]: each for each in structures(found, "computeEnvironments")}
        return tuple(environment(self._reader, rows[arn], facts.size) for arn in arns if arn in rows)

    def _read_snapshot(self) -> Document | None:
        queue = self._job["jobQueue"]
        return self._reader.ask("batch:GetJobQueueSnapshot", lambda batch: batch.get_job_queue_snapshot(jobQueue=queue))

    def _front(self) -> tuple[Ahead, ...] | None:
        snapshot = self._snapshot()
        if snapshot is None:
            return None
        ids = [
            str(each["jobArn"]).rpartition("/")[2] for each in structures(structure(snapshot, "frontOfQueue"), "jobs")
        ]
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
        """Count the active shares, as the snapshot does; without it, count shares with jobs that have not ended."""
        usage = structure(structure(self._snapshot() or {}, "queueUtilization"), "fairshareUtilization")
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
        ids = [str(row["jobId"]) for row in structures(self._job, "dependsOn") if row.get("jobId")]
        index = structure(self._job, "arrayProperties").get("index")
        pairs = {str(row["jobId"]) for row in structures(self._job, "dependsOn") if row.get("type") == "N_TO_N"}
        ids = [f"{one}:{index}" if one in pairs and index is not None else one for one in ids]
        if index and any(row.get("type") == "SEQUENTIAL" for row in structures(self._job, "dependsOn")):
            ids.append(f"{str(self._job['jobId']).rpartition(':')[0]}:{index - 1}")
        known = self._described(ids)
        if known is None:
            return None
        return tuple(
            Other(one, str(known[one]["jobName"]), str(known[one]["status"])) if one in known else Other(one, "", None)
            for one in ids
        )

    def _described(self, ids: list[str]) -> dict[str, Document] | None:
        if not ids:
            return {}
        asked = ids[:ASKED_AT_ONCE]
        found = self._reader.ask("batch:DescribeJobs", lambda batch: batch.describe_jobs(jobs=asked))
        return None if found is None else {str(row["jobId"]): row for row in structures(found, "jobs")}

    def _lines(self) -> tuple[str, ...] | None:
        attempts = structures(self._job, "attempts")
        container = structure(self._job, "container")
        stream = (
            structure(attempts[-1], "container").get("logStreamName") if attempts else container.get("logStreamName")
        )
        if not stream:
            return ()
        options = structure(structure(container, "logConfiguration"), "options")
        group = options.get("awslogs-group") or BATCH_GROUP

        def read(logs: Any) -> tuple[str, ...]:
            answer = logs.get_log_events(logGroupName=group, logStreamName=stream, limit=outcome.TAIL)
            return tuple(str(event["message"]) for event in answer["events"])

        try:
            return self._reader.ask("logs:GetLogEvents", read, absent=("ResourceNotFoundException",))
        except Absent:
            return ()

    def _pull_began(self) -> float | None:
        task = str(structure(self._job, "container").get("taskArn") or "")
        if task.count("/") != 2:
            return None
        found = self._reader.ask(
            "ecs:DescribeTasks", lambda ecs: ecs.describe_tasks(cluster=task.split("/")[1], tasks=[task])
        )
        rows = structures(found or {}, "tasks")
        if not rows or rows[0].get("pullStoppedAt") or not rows[0].get("pullStartedAt"):
            return None
        return float(rows[0]["pullStartedAt"].timestamp())

    def _image_exists(self) -> bool | None:
        """Return None for an image of another registry or region."""
        found = ECR.fullmatch(str(structure(self._job, "container").get("image") or ""))
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


# Batch names an environment's group AWSBatch-<environment>-asg-<uuid>; no answer of Batch surely gives the uuid.
GROUP = "AWSBatch-{}-asg-"
ACTIVITIES = 20


def environment(reader: Reader, row: Document, size: Size) -> Environment:
    """Convert an environment of DescribeComputeEnvironments. Its other facts are read on request."""
    resources = structure(row, "computeResources")
    images = tuple(
        (str(each.get("imageType") or ""), str(resources.get("imageId") or each.get("imageIdOverride") or ""))
        for each in structures(resources, "ec2Configuration")
    )
    name, cluster = str(row["computeEnvironmentName"]), str(row.get("ecsClusterArn") or "").rpartition("/")[2]
    return Environment(
        name=name,
        state=str(row.get("state") or ""),
        status=str(row.get("status") or ""),
        reason=str(row.get("statusReason") or ""),
        spot=resources.get("type") == "SPOT",
        instance_types=tuple(resources.get("instanceTypes") or ()),
        max_vcpus=int(resources.get("maxvCpus") or 0),
        desired_vcpus=int(resources.get("desiredvCpus") or 0),
        cluster=cluster,
        images=images,
        activities=cache(partial(_activities, reader, name)),
        instances=cache(partial(_instances, reader, name, cluster)),
        role=cache(partial(role, reader, str(resources.get("instanceRole") or ""))),
        network=cache(partial(network, reader, resources)),
        own_image=cache(partial(_own_image, reader, structure(resources, "launchTemplate"))),
        over_quota=cache(partial(_over_quota, reader, row, resources, size)),
    )


def _activities(reader: Reader, name: str) -> tuple[Activity, ...] | None:
    """Return None also for a Spot environment with BEST_FIT, which has a Spot fleet instead of a group."""
    groups = reader.pages("autoscaling:DescribeAutoScalingGroups", "describe_auto_scaling_groups", "AutoScalingGroups")
    found = [each["AutoScalingGroupName"] for each in groups or ()]
    group = next((each for each in found if each.startswith(GROUP.format(name))), None)
    if groups is None or group is None:
        return None
    rows = reader.ask(
        "autoscaling:DescribeScalingActivities",
        lambda client: client.describe_scaling_activities(AutoScalingGroupName=group, MaxRecords=ACTIVITIES),
    )
    return None if rows is None else tuple(_activity(each) for each in structures(rows, "Activities"))


def _activity(row: Document) -> Activity:
    failed = row.get("StatusCode") in ("Failed", "Cancelled")
    return Activity(row["StartTime"].timestamp(), failed, str(row.get("StatusMessage") or row.get("Description") or ""))


def _instances(reader: Reader, name: str, cluster: str) -> tuple[Instance, ...] | None:
    filters = [
        {"Name": "tag:aws:autoscaling:groupName", "Values": [f"{GROUP.format(name)}*"]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    found = reader.pages("ec2:DescribeInstances", "describe_instances", "Reservations", Filters=filters)
    if found is None:
        return None
    rows = [row for reservation in found for row in structures(reservation, "Instances")]
    members = _members(reader, cluster) if rows else {}
    return tuple(
        Instance(
            id=row["InstanceId"],
            kind=str(row.get("InstanceType") or ""),
            launched=row["LaunchTime"].timestamp(),
            subnet=str(row.get("SubnetId") or ""),
            public_ip=bool(row.get("PublicIpAddress")),
            joined=None if members is None else members.get(row["InstanceId"], (False, 0))[0],
            registered_mib=0 if members is None else members.get(row["InstanceId"], (False, 0))[1],
        )
        for row in rows
    )


def _members(reader: Reader, cluster: str) -> dict[str, tuple[bool, int]] | None:
    """Return, by EC2 instance, whether its agent is connected, and the memory that it registered."""
    arns = reader.ask(
        "ecs:ListContainerInstances",
        lambda ecs: [
            arn
            for page in ecs.get_paginator("list_container_instances").paginate(cluster=cluster)
            for arn in page["containerInstanceArns"]
        ],
    )
    if arns is None:
        return None
    members: dict[str, tuple[bool, int]] = {}
    for start in range(0, len(arns), 100):
        some = arns[start : start + 100]
        found = reader.ask(
            "ecs:DescribeContainerInstances",
            lambda ecs, some=some: ecs.describe_container_instances(cluster=cluster, containerInstances=some),
        )
        if found is None:
            return None
        for row in structures(found, "containerInstances"):
            memory = [
                each.get("integerValue") for each in structures(row, "registeredResources") if each["name"] == "MEMORY"
            ]
            members[row["ec2InstanceId"]] = (bool(row.get("agentConnected")), int(memory[0] or 0) if memory else 0)
    return members


def _own_image(reader: Reader, template: Document) -> str | None:
    """Return the launch template's image, "" for none. Source:
    https://docs.aws.amazon.com/batch/latest/userguide/ami-selection-order.html"""
    if not template:
        return ""
    if structures(template, "overrides"):
        return None  # one of them may have an image for some types
    named = {
        key: value
        for key, value in (
            ("LaunchTemplateId", template.get("launchTemplateId")),
            ("LaunchTemplateName", template.get("launchTemplateName")),
        )
        if value
    }
    version = str(template.get("version") or "$Default")
    found = reader.ask(
        "ec2:DescribeLaunchTemplateVersions",
        lambda ec2: ec2.describe_launch_template_versions(Versions=[version], **named),
    )
    rows = structures(found or {}, "LaunchTemplateVersions")
    return str(structure(rows[0], "LaunchTemplateData").get("ImageId") or "") if rows else None


def _over_quota(reader: Reader, row: Document, resources: Document, size: Size) -> str | None:
    place = AwsBatchEnvironment(
        name=row["computeEnvironmentName"],
        arn=row["computeEnvironmentArn"],
        capacity="spot" if resources.get("type") == "SPOT" else "on-demand",
        instance_types=list(resources.get("instanceTypes") or ()),
        max_vcpus=int(resources.get("maxvCpus") or 0),
        disk_gib=0,
    )
    answer = quota.of_environments(size, [place], reader.region)
    if answer.unknown:
        reader.unread["servicequotas:GetServiceQuota"] = "; ".join(answer.unknown)
        return None
    reader.looked["servicequotas:GetServiceQuota"] = None
    return answer.over[0] if answer.over else ""
