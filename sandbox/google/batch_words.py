"""What Google Batch says of a job and its tasks: status events, notifications, log entries.

Forms: https://docs.cloud.google.com/batch/docs/troubleshooting (tasks), https://github.com/nextflow-io/nextflow/issues/4225
(states of jobs), https://github.com/broadinstitute/cromwell (BatchRequestExecutorSpec: a job that failed by a task).
"""

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from . import PROJECT, pubsub
from .batch_machines import Vm
from .local_runs import log_lines
from .world import Json, World

CODES = {
    50001: "Spot VM preemption",
    50002: "Batch no longer receives VM updates",
    50003: "VM is rebooted during task execution",
    50004: "tasks cannot be canceled",
    50005: "task runs over the maximum runtime",
    50006: "VM is recreated during task execution",
}
"""https://docs.cloud.google.com/batch/docs/troubleshooting#reserved-exit-codes"""
PREEMPTED, OVER_TIME, OTHERWISE = 50001, 50005, 50000
"""The last: a failure that is of no runnable and of none of CODES, by the description of TaskExecution.exitCode."""

Event = tuple[float, str, str, Vm, int | None]
"""When (seconds since 1970), from which state to which, on which VM; the exit code of a failure."""


def time_of(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "000Z")


def task_text(event: Event) -> str:
    _, before, after, vm, code = event
    said = f"Task state is updated from {before} to {after} on zones/{vm.zone}/instances/{vm.id}"
    if code is None:
        return f"{said}."
    return f"{said}{f' due to {CODES[code]}' if code in CODES else ''} with exit code {code}."


def task_event(event: Event) -> Json:
    """Only a failure has an exit code: https://github.com/nextflow-io/nextflow/pull/6977"""
    ended = {"taskExecution": {"exitCode": event[4]}} if event[4] is not None else {}
    made = {"type": "STATUS_CHANGED", "description": task_text(event), "eventTime": time_of(event[0])}
    return {**made, "taskState": event[2], **ended}


def job_event(description: str, at: float, kind: str = "STATUS_CHANGED") -> Json:
    return {"type": kind, "description": description, "eventTime": time_of(at)}


def job_text(name: str, before: str, after: str) -> str:
    return f"Job state is set from {before} to {after} for job {name}."


def failed_text(index: int, event: Event) -> str:
    what = f'task with index {index} failed due to the following task event: "{task_text(event)}"'
    return f"Job failed due to task failure. Specifically, {what}"


def short_text(code: str, vm: str, why: str) -> str:
    """Of VMs that cannot be had. Form: https://github.com/nextflow-io/nextflow/issues/3061"""
    said = f"Batch Error: code - {code}, description - error count is 1, latest message example: Instance '{vm}'"
    return f"VM in Managed Instance Group meets error: {said} creation failed: {why}"


def refused_text(why: str) -> str:
    return f"Job gets non-retryable information Batch Error: code - CODE_GCE_INVALID_FIELD_VALUE, description - {why}"


def no_agent_text(vm: Vm, at: float) -> str:
    said = f"VM state for instance {vm.name} is {time_of(at)},agent,start"
    return f"No VM has agent reporting correctly within time window 1080 seconds, {said}"


def notify(world: World, job: Json, level: str, state: str, text: str, task: str = "") -> None:
    """Tell the topics of the job. JobName, JobUID, NewJobState and Type are seen in public code that reads them; those
    of a task, and the text as data, are from memory."""
    for each in job.get("notifications", []):
        message = each.get("message", {})
        wanted = message.get(f"new{level.title()}State")
        kind = f"{level}_STATE_CHANGED"
        if message.get("type") != kind or (wanted and wanted != state):
            continue
        told = {"Type": kind, "JobName": job["name"], "JobUID": job["uid"], f"New{level.title()}State": state}
        told |= {"TaskName": task} if task else {}
        pubsub.publish(world, each.get("pubsubTopic", ""), text, told)


class Log:
    """Entries of one job. Labels and resource: https://docs.cloud.google.com/batch/docs/analyze-job-using-logs names
    job_uid, public code that reads entries has task_id, task_group_name and those of the resource; hostname and
    runnable_index are from memory."""

    def __init__(self, world: World, job: Json, seed: int) -> None:
        self.world, self.job = world, job
        self._chance = random.Random(f"{seed} {job['uid']}")
        self._on = job.get("logsPolicy", {}).get("destination") == "CLOUD_LOGGING"

    def task(self, index: int, vm: Vm, lines: Sequence[str], runnable: int, labels: Mapping[str, str]) -> None:
        """What a runnable printed. On Google's what comes from stderr is of severity ERROR; here the two are one."""
        own = {"task_id": f"{self.job['uid']}-group0-{index}", "runnable_index": str(runnable), **labels}
        self._write("batch_task_logs", vm, lines, own)

    def agent(self, vm: Vm, lines: Sequence[str], severity: str = "INFO") -> None:
        self._write("batch_agent_logs", vm, lines, {"task_id": "action/STARTUP/0/0/group0"}, severity)

    def _write(self, log: str, vm: Vm, lines: Sequence[str], labels: Mapping[str, str], severity: str = "INFO") -> None:
        if not self._on or not lines:
            return
        job: Any = self.job
        known = {"job_uid": job["uid"], "task_group_name": job["taskGroups"][0]["name"], "hostname": vm.name}
        where = {"job_id": job["uid"], "location": vm.zone, "resource_container": PROJECT, "project_id": PROJECT}
        resource = {"type": "batch.googleapis.com/Job", "labels": where}
        every = {**job.get("labels", {}), **known, **labels}
        log_lines(self.world, f"projects/{PROJECT}/logs/{log}", resource, lines, every, severity, self._chance)
