"""The lines by which the tasks of an array tell how they go, of a hundred attempts a call.

GetLogEvents reads the log of one attempt and every line in it. FilterLogEvents gives those with the mark alone; it may
be called five times a second (https://repost.aws/knowledge-center/cloudwatch-logs-throttling), and fails where one of
the attempts never wrote anything.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from accel.clouds.aws.clients import Clients
from accel.clouds.aws.errors import asking
from accel.clouds.rate_limit import Rate

from ...runtime.lines import MARK
from ..base import JobRef, LogLine
from .logs import BATCH_GROUP
from .lookup import describe, part
from .status import streams

STREAMS_AT_ONCE = 100
"""Source: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html"""
CALLS_PER_S = 5
PATTERN = f'"{MARK.strip()}"'


def progress_lines(
    clients: Clients, ref: JobRef, group: str | None, tasks: Sequence[int]
) -> Iterator[tuple[int, LogLine]]:
    """Of these tasks, each with its own in their order, and lines that only look like them. `group`: where to look if
    the job does not say."""
    rate = Rate(CALLS_PER_S)
    groups: dict[str, dict[str, int]] = {}
    for job in describe(clients.batch, [f"{ref.id}:{task}" for task in tasks]):
        options = part(part(part(job, "container"), "logConfiguration"), "options")
        of_task = groups.setdefault(options.get("awslogs-group") or group or BATCH_GROUP, {})
        of_task.update({name: int(str(job["jobId"]).rpartition(":")[2]) for name in streams(job) if name})
    for name, task_of in groups.items():
        # Attempts of a task follow one another, so that those of an earlier call are the earlier ones.
        wanted = list(task_of)
        for start in range(0, len(wanted), STREAMS_AT_ONCE):
            yield from _lines(clients, rate, name, wanted[start : start + STREAMS_AT_ONCE], task_of)


def _lines(
    clients: Clients, rate: Rate, group: str, wanted: Sequence[str], task_of: dict[str, int]
) -> Iterator[tuple[int, LogLine]]:
    token: dict[str, str] = {}
    while True:
        rate.turn()
        with asking(f"FilterLogEvents {group}"):
            try:
                answer = clients.logs.filter_log_events(
                    logGroupName=group, logStreamNames=list(wanted), filterPattern=PATTERN, **token
                )
            except clients.logs.exceptions.ResourceNotFoundException:
                answer = None
        if answer is None:
            break
        for event in answer.get("events", []):
            at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
            yield task_of[event["logStreamName"]], LogLine(at, event["message"])
        if not answer.get("nextToken"):
            return
        token = {"nextToken": answer["nextToken"]}
    if len(wanted) > 1:  # one of them has no log
        half = len(wanted) // 2
        for part_of in (wanted[:half], wanted[half:]):
            yield from _lines(clients, rate, group, part_of, task_of)
