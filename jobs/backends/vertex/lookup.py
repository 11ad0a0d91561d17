"""Lookup of a custom job on Vertex AI."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accel.clouds.google.api import Google
from accel.clouds.google.rest import REACH, GarbledAnswer, path_segment
from accel.diagnostics.errors import NotFound
from accel.json_values import entries, object_at

from ..base import Phase
from ..google_logging import parse_time
from .labels import Scope

PHASES = {
    "JOB_STATE_QUEUED": Phase.QUEUED,
    "JOB_STATE_PENDING": Phase.STARTING,
    "JOB_STATE_RUNNING": Phase.RUNNING,
    "JOB_STATE_UPDATING": Phase.RUNNING,
    "JOB_STATE_CANCELLING": Phase.RUNNING,
    "JOB_STATE_PAUSED": Phase.QUEUED,
    "JOB_STATE_SUCCEEDED": Phase.SUCCEEDED,
    "JOB_STATE_FAILED": Phase.FAILED,
    "JOB_STATE_CANCELLED": Phase.FAILED,
    "JOB_STATE_EXPIRED": Phase.FAILED,
    "JOB_STATE_PARTIALLY_SUCCEEDED": Phase.FAILED,
}
"""Source: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/JobState"""
ELSEWHERE = "a job is known in its own project and region alone; `ls` has those of the targets"
LIVE = [state for state, phase in PHASES.items() if not phase.ended]
PAGE = 100
_NAME = re.compile(r"projects/[^/]+/locations/[^/]+/customJobs/([^/]+)")
_REPLICA = re.compile(r"\breplica (?P<name>[\w-]+) ")
_EXIT = re.compile(r"non-zero status (?:of |code )(?P<code>\d+)(?P<signal>\(SIG)?")
"""Sources: https://docs.cloud.google.com/vertex-ai/docs/training/understanding-training-service#handle_common_errors,
https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/2880"""


@dataclass(frozen=True)
class Job:
    """CustomJob of the API."""

    body: Mapping[str, Any]

    @property
    def number(self) -> str:
        return number(self.body) or ""

    @property
    def name(self) -> str:
        return str(self.body.get("displayName", ""))

    @property
    def state(self) -> str:
        return str(self.body.get("state", "JOB_STATE_UNSPECIFIED"))

    @property
    def phase(self) -> Phase:
        return PHASES.get(self.state, Phase.QUEUED)

    @property
    def labels(self) -> dict[str, Any]:
        return object_at(self.body, "labels")

    @property
    def spec(self) -> dict[str, Any]:
        return object_at(self.body, "jobSpec")

    @property
    def scheduling(self) -> dict[str, Any]:
        return object_at(self.spec, "scheduling")

    @property
    def strategy(self) -> str:
        """SPOT, FLEX_START or STANDARD, which is also the default."""
        return str(self.scheduling.get("strategy", "STANDARD"))

    @property
    def pools(self) -> list[dict[str, Any]]:
        """Worker pools by place. A pool that is skipped is empty."""
        return [object_at(each) for each in entries(self.spec.get("workerPoolSpecs"))]

    @property
    def replicas(self) -> list[str]:
        """Names of the replicas in Vertex's logs and errors: workerpool0-0, workerpool1-0, workerpool1-1."""
        return [
            f"workerpool{index}-{replica}"
            for index, pool in enumerate(self.pools)
            for replica in range(int(pool.get("replicaCount") or 0))
        ]

    @property
    def machine(self) -> dict[str, Any]:
        return object_at(self.pools[0], "machineSpec") if self.pools else {}

    @property
    def gpus(self) -> int | None:
        """GPUs of all replicas. None for TPUs, whose number Vertex does not tell."""
        machines = [(object_at(pool, "machineSpec"), int(pool.get("replicaCount") or 0)) for pool in self.pools]
        if any("tpuTopology" in machine or str(machine.get("machineType")).startswith("ct") for machine, _ in machines):
            return None
        return sum(int(machine.get("acceleratorCount") or 0) * count for machine, count in machines)

    @property
    def error(self) -> str:
        """Message of a job that failed or was cancelled; empty without one."""
        return " ".join(str(object_at(self.body, "error").get("message") or "").split())

    @property
    def exit_code(self) -> int | None:
        """Exit code of the replica that the error names. As a shell does, add 128 to the number of a signal."""
        if self.phase is Phase.SUCCEEDED:
            return 0
        told = _EXIT.search(self.error)
        return int(told["code"]) + (128 if told["signal"] else 0) if told else None

    @property
    def failed(self) -> str | None:
        told = _REPLICA.search(self.error)
        return told["name"] if told else None

    @property
    def created_ms(self) -> int:
        at = self.at("createTime")
        return int(at.timestamp() * 1000) if at else 0

    def at(self, field: str) -> datetime | None:
        return parse_time(self.body.get(field))


def number(body: Mapping[str, Any]) -> str | None:
    """Return the number of the job in an answer; None if the answer is no job."""
    found = _NAME.fullmatch(str(body.get("name", "")))
    return found[1] if found else None


def look(google: Google, scope: Scope, wanted: str) -> Job:
    """Raise NotFound if Vertex AI knows no such job."""
    try:
        job = Job(google.get(scope.api, f"{scope.jobs}/{path_segment(wanted)}"))
    except NotFound:
        raise NotFound(f"{scope.ref(wanted)}: Vertex AI knows no such job", ELSEWHERE) from None
    if job.number != wanted:
        raise GarbledAnswer(f"{scope.api} {scope.jobs}/{wanted}: the answer is not the job", REACH)
    return job


def query_jobs(google: Google, scope: Scope, query: str) -> Iterator[Job]:
    """Yield the jobs that match a filter, in no guaranteed order. Source of filters:
    https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs/list"""
    token: object = None
    while True:
        page = google.get(scope.api, scope.jobs, filter=query, pageSize=PAGE, pageToken=token)
        # Without jobs the page is empty; other content must not be mistaken for that.
        if strange := page.keys() - {"customJobs", "nextPageToken"}:
            raise GarbledAnswer(
                f"{scope.api} {scope.jobs}: the answer is no list of jobs: it has {min(strange)}", REACH
            )
        yield from (Job(object_at(each)) for each in entries(page.get("customJobs")))
        token = page.get("nextPageToken") or None
        if token is None:
            return
