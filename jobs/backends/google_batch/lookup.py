"""Lookup of a job and its tasks on Batch."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NoReturn

from accel.clouds.google.api import Google
from accel.clouds.google.rest import REACH, GarbledAnswer, path_segment
from accel.contract import variables
from accel.diagnostics.errors import NotFound
from accel.json_values import entries, mapping, object_at

from ..google_logging import parse_time
from . import labels as marks
from .labels import Scope

KEPT = "Batch forgets a job 60 days after its end"
"""Source: https://docs.cloud.google.com/batch/docs/view-jobs-tasks"""

GOING = "DELETION_IN_PROGRESS"
"""State of a job that is being deleted. Its id is available again soon."""

_CODE = re.compile(r"to FAILED\b.* with exit code (\d+)")


@dataclass(frozen=True)
class Event:
    """Event of a job or a task, with its time. `exit_code` is that of a failed task."""

    at: datetime | None
    text: str
    exit_code: int | None


@dataclass(frozen=True)
class BatchJob:
    """Job of the API."""

    body: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.body.get("name", "")).rpartition("/")[2]

    @property
    def uid(self) -> str:
        return str(self.body.get("uid", ""))

    @property
    def labels(self) -> dict[str, Any]:
        return object_at(self.body, "labels")

    @property
    def state(self) -> str:
        return str(self._status.get("state", "STATE_UNSPECIFIED"))

    @property
    def events(self) -> list[Event]:
        return events(self._status)

    @property
    def counts(self) -> dict[str, int]:
        groups = object_at(self._status, "taskGroups")
        found: dict[str, int] = {}
        for group in groups.values():
            for state, count in object_at(group, "counts").items():
                found[state] = found.get(state, 0) + int(count)
        return {state: count for state, count in found.items() if count}

    @property
    def group(self) -> dict[str, Any]:
        return first(self.body.get("taskGroups"))

    @property
    def spec(self) -> dict[str, Any]:
        return object_at(self.group, "taskSpec")

    @property
    def count(self) -> int:
        return int(self.group.get("taskCount") or 1)

    @property
    def several(self) -> str | None:
        """`node` or `task` if the job has several, else None. To Batch, nodes are tasks."""
        if self.count < 2:
            return None
        set_by_us = object_at(self.spec, "environment", "variables")
        return "node" if variables.NODE_COUNT in set_by_us else "task"

    @property
    def policy(self) -> dict[str, Any]:
        """Policy for the VMs; empty if they come from an instance template."""
        return object_at(first(self.allocation.get("instances")), "policy")

    @property
    def allocation(self) -> dict[str, Any]:
        return object_at(self.body, "allocationPolicy")

    @property
    def logs_path(self) -> str | None:
        policy = object_at(self.body, "logsPolicy")
        return str(policy.get("logsPath")) if policy.get("destination") == "PATH" else None

    @property
    def _status(self) -> dict[str, Any]:
        return object_at(self.body, "status")


@dataclass(frozen=True)
class Task:
    """Task of the API."""

    body: dict[str, Any]

    @property
    def index(self) -> int:
        return int(str(self.body.get("name")).rpartition("/")[2])

    @property
    def state(self) -> str:
        return str(object_at(self.body, "status").get("state", "STATE_UNSPECIFIED"))

    @property
    def events(self) -> list[Event]:
        """Events of all attempts, oldest first."""
        return events(object_at(self.body, "status"))

    @property
    def failures(self) -> list[Event]:
        return [event for event in self.events if event.exit_code]

    @property
    def attempts(self) -> int:
        """Number of attempts that have begun. An attempt that continues, or succeeded, has no event of failure."""
        goes_on = self.state in ("ASSIGNED", "RUNNING", "SUCCEEDED")
        unsaid = self.state == "FAILED" and not self.failures
        return len(self.failures) + (goes_on or unsaid)

    @property
    def exit_code(self) -> int | None:
        """Exit code of the task's end, whatever its earlier attempts did: a success has no event with a code, and
        events of earlier attempts stay. Source: https://github.com/nextflow-io/nextflow/pull/6977"""
        if self.state == "SUCCEEDED":
            return 0
        return self.failures[-1].exit_code if self.state == "FAILED" and self.failures else None


def events(status: Mapping[str, Any]) -> list[Event]:
    """Return the events of a JobStatus or TaskStatus, oldest first."""
    found: list[Event] = []
    for each in entries(status.get("statusEvents")):
        event = object_at(each)
        text = str(event.get("description", ""))
        code = object_at(event, "taskExecution").get("exitCode")
        if code is None and (told := _CODE.search(text)):
            code = told[1]
        found.append(Event(parse_time(event.get("eventTime")), text, None if code is None else int(code)))
    # Batch gives them in this order, but no page promises it.
    return sorted(found, key=lambda event: event.at.timestamp() if event.at else 0.0)


def look(google: Google, scope: Scope, name: str) -> BatchJob:
    """Raise NotFound, and CloudSilent for an answer that is not Batch's."""
    try:
        found = BatchJob(google.get("batch", path_of(scope, name)))
    except NotFound:
        raise NotFound(f"{scope.ref(name)}: Batch knows no such job", KEPT) from None
    return found if is_job(found.body, name) else _not_of_batch(f"job {name}")


def is_job(answer: Mapping[str, Any], name: str) -> bool:
    """Return whether an answer is the job: some network may have answered in Google's place."""
    return str(answer.get("name")).rpartition("/")[2] == name


def _not_of_batch(what: str) -> NoReturn:
    raise GarbledAnswer(f"batch: what was answered is not {what}", REACH)


def first_task(google: Google, scope: Scope, name: str) -> Task | None:
    """Return task 0; None if Batch has not created it yet, or has forgotten it. Source:
    https://github.com/nextflow-io/nextflow/pull/5690"""
    try:
        found = google.get("batch", f"{_tasks(scope, name)}/0")
    except NotFound:
        return None
    return Task(found) if is_job(found, "0") else _not_of_batch(f"task 0 of {name}")


def tasks(google: Google, scope: Scope, name: str, *, state: str | None = None, limit: int) -> list[Task]:
    """Return tasks in Batch's order."""
    return [*islice(_listed(google, scope, name, state, limit), limit)]


def _listed(google: Google, scope: Scope, name: str, state: str | None, limit: int) -> Iterator[Task]:
    query = {"filter": f"State={state}" if state else None, "pageSize": min(limit, 1000)}
    try:
        for each in google.pages("batch", _tasks(scope, name), "tasks", **query):
            found = Task(each)
            if state in (None, found.state):
                yield found
    except NotFound:
        return


def path_of(scope: Scope, name: str) -> str:
    return f"v1/{scope.parent}/jobs/{path_segment(name)}"


def _tasks(scope: Scope, name: str) -> str:
    return f"{path_of(scope, name)}/taskGroups/{marks.GROUP}/tasks"


def first(value: Any) -> dict[str, Any]:
    """Return the first object of an array; an empty one without any."""
    return next((found for each in entries(value) if (found := mapping(each)) is not None), dict[str, Any]())
