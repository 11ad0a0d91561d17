"""Output of a job's replicas, from Cloud Logging. Entries have the resource ml_job, with the job's number and the
replica's name in the resource's labels; lines of the task `service` are Vertex's own. Sources:
https://docs.cloud.google.com/vertex-ai/docs/training/monitor-debug-interactive-shell,
https://github.com/tensorflow/models/issues/10735, and the filter of `gcloud ai custom-jobs stream-logs`."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from accel.clouds.google.api import Google
from accel.json_values import object_at

from ..base import JobRef, LogLine
from ..google_logging import Tail, log_lines, parse_time
from ..tasks import check_task
from .labels import Scope
from .lookup import Job, look

SERVICE = "service"
EARLY = timedelta(minutes=1)
"""Time before a job's creation from which entries are read, because clocks differ."""


def logs(
    google: Google, scope: Scope, ref: JobRef, *, task: int | None, follow: bool, tail: int | None = None
) -> Iterator[LogLine]:
    """Yield all replicas' lines side by side, or one's. Raise NotFound, and BadInput for a replica that is missing."""
    job = look(google, scope, ref.id)
    replicas = job.replicas
    check_task(ref, task, "node", len(replicas))
    only = replicas[task] if task is not None else None
    sources = {name: _source(name, index) for index, name in enumerate(replicas)} if len(replicas) > 1 else {}

    def line(entry: Mapping[str, Any]) -> LogLine | None:
        at = parse_time(entry.get("timestamp"))
        return LogLine(at, text_of(entry), sources.get(task_of(entry), "") if only is None else "") if at else None

    def stopped() -> datetime | None:
        return look(google, scope, ref.id).at("endTime")

    entries = Tail(google, scope.project, query(job, only), since(job))
    return log_lines(entries, line, stopped if follow else None, tail)


def query(job: Job, replica: str | None) -> str:
    named = f'="{replica}"' if replica else f'!="{SERVICE}"'
    return f'resource.type="ml_job" AND resource.labels.job_id="{job.number}" AND resource.labels.task_name{named}'


def since(job: Job) -> datetime:
    created = job.at("createTime")
    assert created is not None, "a job without the time of its creation"
    return created - EARLY


def task_of(entry: Mapping[str, Any]) -> str:
    """Return the replica's name, or SERVICE."""
    labels = object_at(entry, "resource", "labels")
    return str(labels.get("task_name", ""))


def text_of(entry: Mapping[str, Any]) -> str:
    told = object_at(entry, "jsonPayload").get("message", entry.get("textPayload", ""))
    return str(told).removesuffix("\n")


def _source(replica: str, index: int) -> str:
    return f"node {index}" if replica.startswith(("workerpool0-", "workerpool1-")) else replica
