"""Jobs and tasks as Batch's API has them, for what the sandbox does not show."""

from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.backends.google_batch import labels
from jobs.backends.google_batch.lookup import BatchJob, Task

SCOPE = labels.Scope("acme", "us-central1")
NAME = "digits-0123456789ab"
REF = SCOPE.ref(NAME)
PATH = f"projects/1005074806481/locations/us-central1/jobs/{NAME}"
START = datetime(2026, 11, 22, 3, tzinfo=UTC)
WHY = {
    50001: "due to Spot VM preemption with exit code 50001.",
    50002: "due to Batch no longer receives VM updates with exit code 50002.",
    50003: "due to VM is rebooted during task execution with exit code 50003.",
    50004: "due to tasks cannot be canceled with exit code 50004.",
    50005: "due to task runs over the maximum runtime with exit code 50005.",
    50006: "due to VM is recreated during task execution with exit code 50006.",
}
"""Source: https://docs.cloud.google.com/batch/docs/troubleshooting#task-failure-exit-codes"""


def at(minute: float) -> str:
    return f"{START + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%S}.123456789Z"


def event(minute: float, text: str, code: int | None = None) -> dict[str, Any]:
    """`code`: as newer events have it, beside the text."""
    made: dict[str, Any] = {"type": "STATUS_CHANGED", "eventTime": at(minute), "description": text}
    return made if code is None else {**made, "taskExecution": {"exitCode": code}}


def moved(minute: float, old: str, new: str, why: str = "") -> dict[str, Any]:
    """Of a job."""
    return event(minute, f"Job state is set from {old} to {new} for job {PATH}.{why}")


def ran(minute: float, new: str = "RUNNING", old: str = "PENDING") -> dict[str, Any]:
    """Of a task."""
    return event(
        minute, f"Task state is updated from {old} to {new} on zones/us-central1-b/instances/8098872438472929780."
    )


def ended(minute: float, code: int, *, told: bool = True) -> dict[str, Any]:
    """Of a task that failed."""
    why = WHY.get(code, f"with exit code {code}.")
    text = f"Task state is updated from RUNNING to FAILED on zones/us-central1-b/instances/8098872438472929780 {why}"
    return event(minute, text, code if told else None)


def failed_by(minute: float, code: int, index: int = 0) -> dict[str, Any]:
    """Of a job: what Batch says of the task that failed it."""
    text = ended(minute, code)["description"]
    what = f'task with index {index} failed due to the following task event: "{text}"'
    why = f"Job failed due to task failure. Specifically, {what}"
    return moved(minute, "RUNNING", "FAILED", why)


def job(state: str, *events: dict[str, Any], counts: dict[str, int] | None = None, **changes: Any) -> BatchJob:
    policy = {"machineType": "g2-standard-8", "provisioningModel": "SPOT", **changes.pop("policy", {})}
    group: dict[str, Any] = {"taskCount": "1", "parallelism": "1", **changes.pop("group", {})}
    body = {
        "name": f"projects/acme/locations/us-central1/jobs/{NAME}",
        "uid": "digits-0123456789-uid0",
        "labels": {
            labels.MAKER: labels.JOBS,
            labels.NAME: "digits",
            labels.TARGET: "gpus",
            labels.KEY: "0",
            labels.SPEC: "1",
        },
        "createTime": at(0),
        "updateTime": at(99),
        "taskGroups": [group],
        "allocationPolicy": {"instances": [{"policy": policy}]},
        "logsPolicy": {"destination": "CLOUD_LOGGING"},
        "status": {
            "state": state,
            "statusEvents": list(events),
            "taskGroups": {"group0": {"counts": {name: str(count) for name, count in (counts or {}).items()}}},
        },
        **changes,
    }
    return BatchJob(body)


def task(state: str, *events: dict[str, Any], index: int = 0) -> Task:
    name = f"{PATH}/taskGroups/group0/tasks/{index}"
    return Task({"name": name, "status": {"state": state, "statusEvents": list(events)}})
