"""Levers of jobs that Google's services queue: those that wait are cancelled, and with the running work the others.

Nobody can take a cancellation back: `accel-jobs retry` submits such a job again. Only jobs are touched that carry the
stack's labels and that of our client.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

from accel.budget.levers import Change

from .cloud import Cloud, NotThere, Unmet, part
from .plan import Plan

MAKER, JOBS = "accel-maker", "jobs"
"""Label and value of what our client makes: jobs/backends/google_regional.py."""
BATCH = {"waiting": ("QUEUED", "SCHEDULED"), "running": ("RUNNING",)}
"""Source: https://docs.cloud.google.com/batch/docs/reference/rest/v1/projects.locations.jobs#State"""
VERTEX = {"waiting": ("JOB_STATE_QUEUED", "JOB_STATE_PENDING"), "running": ("JOB_STATE_RUNNING",)}
"""Source: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/JobState"""
RUNNING = ("ACTIVE", "made")
"""States of a TPU's queued resource, and of a VM's attempt, whose machines are there. Source of the former:
https://docs.cloud.google.com/tpu/docs/queued-resources"""
TPUS = ("tpu-vm", "tpu-queue")
"""Kinds of records whose machines are a queued resource."""
_NO_MACHINES, GONE = ("planned", "ended"), "gone"
READERS = 16
"""A bucket keeps the records of jobs that are over too."""


class Regional:
    """Jobs of Google Batch or Vertex AI of one stage."""

    def __init__(self, cloud: Cloud, plan: Plan, service: str, stage: str) -> None:
        self._cloud, self._plan, self._service = cloud, plan, service
        self.stage, self.kind = stage, f"{service}-{stage}"
        self._regions = plan.batch if service == "google-batch" else plan.vertex
        self._states = (BATCH if service == "google-batch" else VERTEX)[stage]

    def plan(self) -> list[Change]:
        return [
            Change(self.stage, self.kind, job["name"], None, "cancelled", f"job {_shown(job)}: {state} to cancelled")
            for job, state in self._jobs()
            if state in self._states and _ours(job.get("labels", {}), self._plan.labels)
        ]

    def _jobs(self) -> Iterator[tuple[Mapping[str, Any], str]]:
        for region in self._regions:
            at = f"v1/projects/{part(self._plan.project)}/locations/{region}"
            if self._service == "google-batch":
                for job in self._cloud.pages("batch", f"{at}/jobs", "jobs", pageSize=500):
                    yield job, str(job.get("status", {}).get("state"))
            else:
                for job in self._cloud.pages(f"{region}-aiplatform", f"{at}/customJobs", "customJobs", pageSize=100):
                    yield job, str(job.get("state"))

    def pull(self, change: Change) -> None:
        """A job that has ended or gone meanwhile is no failure."""
        region = change.name.split("/")[3]
        api = "batch" if self._service == "google-batch" else f"{region}-aiplatform"
        try:
            self._cloud.call("POST", api, f"v1/{change.name}:cancel", {})
        except (NotThere, Unmet):
            return

    def restore(self, change: Change) -> str | None:
        raise AssertionError("what was cancelled is not restored")


class Records:
    """Jobs on TPUs and VMs of their own: the record says that they are cancelled, and their request goes."""

    def __init__(self, cloud: Cloud, plan: Plan, stage: str) -> None:
        self._cloud, self._plan = cloud, plan
        self.stage, self.kind = stage, f"machines-{stage}"

    def plan(self) -> list[Change]:
        """A job between two attempts waits too: the next client that looks would ask for machines again. One that is
        cancelled already is told again while its machines are there."""
        return [change for bucket in self._plan.buckets for change in self._changes(bucket)]

    def _changes(self, bucket: str) -> Iterator[Change]:
        names = self._names(bucket)
        with ThreadPoolExecutor(READERS) as threads:
            records = [each for each, _ in threads.map(self._read, repeat(bucket), names)]
        for name, record in zip(names, records, strict=True):
            state = "" if record.get("ended") else self._state(record)
            if not state or (record.get("cancelled") and state in (*_NO_MACHINES, GONE)):
                continue
            if (state in RUNNING) == (self.stage == "running"):
                shown = f"{record['job_name']} ({record['kind']}:{bucket}/{record['name']})"
                text = f"job {shown}: {state} to cancelled"
                yield Change(self.stage, self.kind, f"{bucket}/{name}", None, "cancelled", text)

    def _state(self, record: Mapping[str, Any]) -> str:
        """Of a TPU that was asked for the state of its queued resource; else that of the last attempt."""
        last = record["attempts"][-1]
        if record["kind"] not in TPUS or last["state"] != "made":
            return str(last["state"])
        try:
            found = self._cloud.call("GET", "tpu", f"v2/{_queued(record)}")
        except NotThere:
            return GONE
        return str(found.get("state", {}).get("state"))

    def pull(self, change: Change) -> None:
        bucket, _, name = change.name.partition("/")
        record, generation = self._read(bucket, name)
        if not record.get("cancelled"):
            told = json.dumps({**record, "cancelled": "the budget of its stack is spent"}, sort_keys=True, indent=1)
            query = {"uploadType": "media", "name": name, "ifGenerationMatch": generation}
            self._cloud.send("POST", "storage-upload", f"b/{part(bucket)}/o", told.encode(), **query)
        self._removed(record)

    def _removed(self, record: Mapping[str, Any]) -> None:
        """Asks for the deletion of the attempt's machines, which get SIGTERM; the record's client does the rest."""
        place = f"projects/{part(record['body']['project'])}/zones/{part(record['attempts'][-1]['zone'])}"
        name = part(record["attempts"][-1]["name"])
        try:
            if record["kind"] in TPUS:
                self._cloud.call("DELETE", "tpu", f"v2/{_queued(record)}", force="true")
            elif record["body"]["machine"].get("group"):
                self._cloud.call("DELETE", "compute", f"{place}/instanceGroupManagers/{name}")
            else:
                self._cloud.call("DELETE", "compute", f"{place}/instances/{name}")
        except NotThere:
            return

    def restore(self, change: Change) -> str | None:
        raise AssertionError("what was cancelled is not restored")

    def _names(self, bucket: str) -> list[str]:
        """Of jobs, and of TPUs that the stack declares, which would be asked for again."""
        at = f"b/{part(bucket)}/o"
        return [
            each["name"]
            for folder in ("accel-jobs", "accel-queues")
            for each in self._cloud.pages(
                "storage", at, "items", matchGlob=f"{folder}/*/record.json", fields="items(name),nextPageToken"
            )
        ]

    def _read(self, bucket: str, name: str) -> tuple[dict[str, Any], str]:
        data, headers = self._cloud.send("GET", "storage", f"b/{part(bucket)}/o/{part(name)}", alt="media")
        return json.loads(data), headers["X-Goog-Generation"]


def _queued(record: Mapping[str, Any]) -> str:
    last, project = record["attempts"][-1], part(record["body"]["project"])
    return f"projects/{project}/locations/{part(last['zone'])}/queuedResources/{part(last['name'])}"


def _ours(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return labels.get(MAKER) == JOBS and wanted.items() <= labels.items()


def _shown(job: Mapping[str, Any]) -> str:
    named = job.get("displayName") or job.get("labels", {}).get("accel-name") or ""
    return f"{named} ({job['name'].partition('/locations/')[2]})" if named else str(job["name"])
