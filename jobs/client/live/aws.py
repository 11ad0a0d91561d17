"""Jobs of AWS Batch that have not ended, with the ECS cluster that each runs on."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from accel.clouds.aws.batch_jobs import describe, pages
from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from accel.clouds.aws.responses import structure, structures
from accel.contract.targets import AwsBatchTarget
from accel.threads import in_threads

from ...backends.aws_batch import status as batch_status
from ...backends.base import JobRef, Phase
from .job import Live, hours

RUNNING = ("STARTING", "RUNNING")
AT_ONCE = 16


def jobs_of(
    region: str, queues: Iterable[str] | None, own: Mapping[str, tuple[str, AwsBatchTarget]], now: datetime
) -> Iterator[Live]:
    """Yield the live jobs of these queues of the region; None: of all. `own` has the targets by their queue's ARN."""
    batch = client("batch", region, connect_s=5, read_s=20, attempts=4)
    asked_of = _queues(batch) if queues is None else sorted(queues)
    wanted = [(queue, status) for queue in asked_of for status in batch_status.LIVE]
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    lists = in_threads(lambda each: _listed(batch, jobQueue=each[0], jobStatus=each[1]), wanted, AT_ONCE)
    for (queue, _), listed in zip(wanted, lists, strict=True):
        found |= {job["jobId"]: (queue, job) for job in listed}
    parents = [job for _, job in found.values() if job.get("arrayProperties") or job.get("nodeProperties")]
    inner = in_threads(partial(_children, batch), parents, AT_ONCE)
    children = {job["jobId"]: ids for job, ids in zip(parents, inner, strict=True)}
    asked = [job_id for ids in children.values() for job_id in ids]
    asked += [job_id for job_id, (_, job) in found.items() if job_id not in children and job["status"] in RUNNING]
    details = {job["jobId"]: job for job in describe(batch, asked)}
    for job_id, (queue, job) in found.items():
        running = [details[each] for each in children.get(job_id, [job_id]) if each in details]
        yield _live(region, job, queue, running, own.get(queue), now)


def _queues(batch: Any) -> list[str]:
    with asking("DescribeJobQueues"):
        answers = list(batch.get_paginator("describe_job_queues").paginate())
    return [queue["jobQueueArn"] for page in answers for queue in page["jobQueues"]]


def _listed(batch: Any, **asked: str) -> list[dict[str, Any]]:
    return [job for page in pages(batch, **asked) for job in page]


def _children(batch: Any, job: Mapping[str, Any]) -> list[str]:
    name = "arrayJobId" if job.get("arrayProperties") else "multiNodeJobId"
    return [each["jobId"] for status in RUNNING for each in _listed(batch, **{name: job["jobId"]}, jobStatus=status)]


def _live(
    region: str,
    job: Mapping[str, Any],
    queue: str,
    running: list[dict[str, Any]],
    own: tuple[str, AwsBatchTarget] | None,
    now: datetime,
) -> Live:
    counted = [(_gpus(each), _at(each.get("startedAt"))) for each in running]
    held = sum(gpus for gpus, _ in counted)
    spans = [hours(gpus, since, now) for gpus, since in counted if since]
    places = {f"queue:{queue}"}
    for task in (task for each in running for task in _tasks(each)):
        # The ARN of a container instance has the name of its cluster: arn:aws:ecs:...:container-instance/<cluster>/<id>
        instance = str(task.get("containerInstanceArn") or "").split("/")
        places |= {f"cluster:{instance[1]}"} if len(instance) == 3 else set[str]()
    if own:
        places |= {f"role:{own[1].job_role_arn}", f"role:{own[1].execution_role_arn}"}
    return Live(
        ref=str(JobRef("aws-batch", region, job["jobId"])),
        name=str(job["jobName"]),
        phase=str(Phase.RUNNING if running and batch_status.phase(job) is Phase.QUEUED else batch_status.phase(job)),
        target=own[0] if own else f"queue {queue.rpartition('/')[2]}",
        accelerators=held,
        hours=sum(span for span in spans if span is not None),
        places=frozenset(places),
    )


def _tasks(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the ECS tasks: one, or those of ecsProperties for a job of several containers. Source:
    https://docs.aws.amazon.com/batch/latest/APIReference/API_EcsTaskDetails.html"""
    return structures(structure(job, "ecsProperties"), "taskProperties") or [structure(job, "container")]


def _gpus(job: Mapping[str, Any]) -> int:
    containers = [each for task in _tasks(job) for each in structures(task, "containers") or [task]]
    wanted = [each for container in containers for each in structures(container, "resourceRequirements")]
    return sum(int(each["value"]) for each in wanted if each["type"] == "GPU")


def _at(milliseconds: Any) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
