"""Levers of a stack on Google Cloud: what a budget stop changes about pools, queues, TPU requests, and jobs.

Node pools stop growing, Kueue's queues admit nothing, and waiting TPU requests are deleted; resuming the stack restores
these. Waiting jobs are cancelled, and the others together with the running work. A cancellation cannot be undone:
`accel-jobs retry` submits such a job again. Only jobs that have the stack's labels and our client's are changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

from accel.budget.levers import FOREIGN, Change, Lever, LeverError

from .cloud import MERGE_PATCH, CallError, Cloud, NotThere, Unmet, path_segment
from .plan import Plan, PlannedCluster

_OFF: dict[str, Any] = {"enabled": False}
_EACH, _TOTAL = ("minNodeCount", "maxNodeCount"), ("totalMinNodeCount", "totalMaxNodeCount")
_QUEUES = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues"
_NONE, _HOLD, _DRAIN = "None", "Hold", "HoldAndDrain"
"""Stop policies. Hold: nothing new is admitted; HoldAndDrain: running work is also evicted, by SIGTERM. Source:
https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#stoppolicy"""
_WAITING_REQUESTS = ("CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES")
"""Source: https://docs.cloud.google.com/tpu/docs/queued-resources"""
_DELETED, _INVALID = "deleted", 400
_ASKED = ("tpu", "spot", "guaranteed", "queueingPolicy", "reservationName", "runDuration")
_NODE = (
    *("description", "acceleratorType", "acceleratorConfig", "runtimeVersion", "networkConfig", "networkConfigs"),
    *("cidrBlock", "serviceAccount", "schedulingConfig", "dataDisks", "labels", "metadata", "tags"),
    *("shieldedInstanceConfig", "bootDiskConfig"),
)
"""Fields that a request may set; the others of an answer are Google's. Source: the schemas QueuedResource and Node of
https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources"""
_MAKER, _JOBS = "accel-maker", "jobs"
"""Label and value of jobs that our client creates: jobs/backends/google_regional.py."""
_BATCH = {"waiting": ("QUEUED", "SCHEDULED"), "running": ("RUNNING",)}
"""Source: https://docs.cloud.google.com/batch/docs/reference/rest/v1/projects.locations.jobs#State"""
_VERTEX = {"waiting": ("JOB_STATE_QUEUED", "JOB_STATE_PENDING"), "running": ("JOB_STATE_RUNNING",)}
"""Source: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/JobState"""
_WITH_MACHINES = ("ACTIVE", "made")
"""States of a TPU's queued resource, and of a VM's attempt, with existing machines. Source of the former:
https://docs.cloud.google.com/tpu/docs/queued-resources"""
_TPU_KINDS = ("tpu-vm", "tpu-queue")
"""Kinds of records whose machines are a queued resource."""
_NO_MACHINES, _GONE = ("planned", "ended"), "gone"
_READERS = 16
"""Threads that read records: a bucket keeps those of ended jobs too."""
_SERVICES = ("google-batch", "vertex")


def levers(plan: Plan, cloud: Cloud) -> list[Lever]:
    """Return every lever of a stack. A lever for something that the stack does not have changes nothing."""
    return [
        Pools(cloud, plan.clusters),
        Queues(cloud, plan.clusters),
        TpuRequests(cloud, plan.tpu_queues),
        *(Regional(cloud, plan, service, "waiting") for service in _SERVICES),
        Records(cloud, plan, "waiting"),
        Queues(cloud, plan.clusters, drain=True),
        *(Regional(cloud, plan, service, "running") for service in _SERVICES),
        Records(cloud, plan, "running"),
    ]


class Pools:
    """Lever that brings pools of accelerators to 0 nodes and keeps them there.

    GKE accepts no maximum of 0: "max_node_count and total_max_node_count cannot be both set to zero"
    (https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/pull/1554). So the autoscaling of a
    pool without nodes is switched off. A pool with nodes may only shrink (minimum 0, maximum 1), nothing running is
    ended, and a later call switches its autoscaling off once the last node is gone.
    """

    stage, kind = "maximums", "gke-pools"

    def __init__(self, cloud: Cloud, clusters: list[PlannedCluster]) -> None:
        self._cloud = cloud
        self._names = [f"{each.path}/nodePools/{pool}" for each in clusters for pool in each.pools.values()]

    def plan(self) -> list[Change]:
        found = ((name, self._pool(name)) for name in self._names)
        return [self._change(name, pool) for name, pool in found if pool.get("autoscaling", {}).get("enabled")]

    def _change(self, name: str, pool: dict[str, Any]) -> Change:
        now, nodes = pool["autoscaling"], self._nodes(pool)
        ends = f" once its nodes ({nodes} now) are gone, no new ones until then" if nodes else ""
        text = f"node pool {_short(name)}: autoscaling to {_most(now)} nodes, to 0 nodes and off{ends}"
        return Change(self.stage, self.kind, name, now, _narrow(now) if nodes else _OFF, text, later=nodes > 0)

    def pull(self, change: Change) -> None:
        pool = self._pool(change.name)
        if change.after == _OFF and (nodes := self._nodes(pool)):
            raise LeverError(f"node pool {_short(change.name)}: nodes have come meanwhile ({nodes})")
        if not _same(pool.get("autoscaling", _OFF), change.after):
            self._set(change.name, change.after)

    def restore(self, change: Change) -> str | None:
        if change.name not in self._names:
            return f"node pool {_short(change.name)} {FOREIGN}"
        now = self._pool(change.name).get("autoscaling", _OFF)
        if _same(now, change.before):
            return None
        ours = (_OFF, _narrow(change.before))
        if not any(_same(now, each) for each in ours):
            return f"node pool {_short(change.name)}: autoscaling to {_most(now)} nodes"
        try:
            self._set(change.name, change.before)
        except NotThere:
            return f"node pool {_short(change.name)}: is not there"
        return None

    def _pool(self, name: str) -> dict[str, Any]:
        try:
            return self._cloud.call("GET", "container", f"v1/{name}")
        except NotThere:
            return {}

    def _nodes(self, pool: dict[str, Any]) -> int:
        """Return the target size of all the pool's groups, which includes nodes that are still to come."""
        paths = (url.partition("/compute/v1/")[2] for url in pool.get("instanceGroupUrls", []))
        return sum(int(self._cloud.call("GET", "compute", path).get("targetSize", 0)) for path in paths)

    def _set(self, name: str, autoscaling: dict[str, Any]) -> None:
        """Change a pool and wait for the end of the change: a cluster accepts one at a time."""
        begun = self._cloud.call("POST", "container", f"v1/{name}:setAutoscaling", {"autoscaling": autoscaling})
        self._cloud.done("container", f"v1/{name.partition('/clusters/')[0]}/operations", begun)


def _narrow(before: dict[str, Any]) -> dict[str, Any]:
    """Return autoscaling that only shrinks a pool: to no nodes, and never above one node, or one in each zone."""
    least, most = _TOTAL if before.get("totalMaxNodeCount") else _EACH
    return {**{name: value for name, value in before.items() if name not in (least, most)}, least: 0, most: 1}


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two settings are equal. Google omits zeros."""
    return {k: v for k, v in one.items() if v} == {k: v for k, v in other.items() if v}


def _most(autoscaling: dict[str, Any]) -> int:
    return int(autoscaling.get("totalMaxNodeCount") or autoscaling.get("maxNodeCount") or 0)


class Queues:
    """Lever that sets the stop policy of Kueue's ClusterQueues: Hold with the stop, HoldAndDrain when running work is
    stopped."""

    def __init__(self, cloud: Cloud, clusters: list[PlannedCluster], *, drain: bool = False) -> None:
        self._cloud, self._after = cloud, _DRAIN if drain else _HOLD
        self._clusters = {each.path: each for each in clusters}
        self._queues = [(each.path, queue) for each in clusters for queue in each.queues]
        self.stage, self.kind = ("running", "kueue-drain") if drain else ("kueue", "kueue-hold")

    def plan(self) -> list[Change]:
        found = ((path, queue, self._policy(path, queue)) for path, queue in self._queues)
        weaker = {_HOLD: (_NONE,), _DRAIN: (_NONE, _HOLD)}[self._after]
        return [self._change(path, queue, now) for path, queue, now in found if now in weaker]

    def _change(self, path: str, queue: str, now: str) -> Change:
        text = f"cluster queue {queue} of {_short(path)}: stop policy {self._after}"
        return Change(self.stage, self.kind, f"{path}{_QUEUES}/{queue}", now, self._after, text)

    def pull(self, change: Change) -> None:
        self._set(change.name, change.after)

    def restore(self, change: Change) -> str | None:
        path, _, queue = change.name.partition(f"{_QUEUES}/")
        if (path, queue) not in self._queues:
            return f"cluster queue {queue} {FOREIGN}"
        now = self._policy(path, queue)
        if now == change.before:
            return None
        if now != change.after:
            return f"cluster queue {queue}: stop policy {now or 'is not there'}"
        self._set(change.name, change.before)
        return None

    def _policy(self, path: str, queue: str) -> str:
        """Return the queue's stop policy; "" if the queue does not exist, or its cluster no longer does."""
        if path not in self._clusters:
            return ""
        try:
            found = self._ask(path, "GET", queue)
        except NotThere:
            return ""
        return str(found.get("spec", {}).get("stopPolicy") or _NONE)

    def _set(self, name: str, policy: str) -> None:
        path, queue = name.split(f"{_QUEUES}/")
        self._ask(path, "PATCH", queue, {"spec": {"stopPolicy": policy}})

    def _ask(self, path: str, method: str, queue: str, body: Any = None) -> dict[str, Any]:
        cluster = self._clusters[path]
        where = {"endpoint": cluster.endpoint, "ca_certificate": cluster.ca_certificate}
        return self._cloud.kubernetes(where, method, f"{_QUEUES}/{path_segment(queue)}", body, MERGE_PATCH)


class TpuRequests:
    """Lever that deletes waiting TPU requests. Restoring creates a request again under its name, at the end of Google's
    queue."""

    stage, kind = "waiting", "tpu-requests"

    def __init__(self, cloud: Cloud, names: list[str]) -> None:
        self._cloud, self._names = cloud, names

    def plan(self) -> list[Change]:
        return [
            Change(
                self.stage, self.kind, name, _asked(found), _DELETED, f"TPU request {_short(name)}: {state} to deleted"
            )
            for name in self._names
            if (found := self._found(name)) and (state := found.get("state", {}).get("state")) in _WAITING_REQUESTS
        ]

    def pull(self, change: Change) -> None:
        try:
            self._cloud.call("DELETE", "tpu", f"v2/{change.name}", force="true")
        except NotThere:
            return

    def restore(self, change: Change) -> str | None:
        at, _, short = change.name.rpartition("/")
        if change.name not in self._names:
            return f"TPU request {short} {FOREIGN}"
        if found := self._found(change.name):
            if found.get("state", {}).get("state") == "DELETING":
                raise LeverError(f"TPU request {short} is still being deleted")
            return None
        try:
            self._cloud.call("POST", "tpu", f"v2/{at}", change.before, queuedResourceId=short)
        except CallError as refused:
            if refused.status != _INVALID:
                raise
            # As one that was valid until a time which is past.
            return f"{refused}; `pulumi up --refresh` asks for it as the stack has it now"
        return None

    def _found(self, name: str) -> dict[str, Any] | None:
        try:
            return self._cloud.call("GET", "tpu", f"v2/{name}")
        except NotThere:
            return None


def _asked(found: dict[str, Any]) -> dict[str, Any]:
    """Return the body that creates the same request again."""
    specs = [
        {
            **{name: spec[name] for name in ("parent", "nodeId", "multisliceParams") if name in spec},
            "node": {name: spec["node"][name] for name in _NODE if name in spec["node"]},
        }
        for spec in found["tpu"]["nodeSpec"]
    ]
    return {**{name: found[name] for name in _ASKED if name in found}, "tpu": {"nodeSpec": specs}}


class Regional:
    """Lever that cancels the jobs of Google Batch or Vertex AI of one stage."""

    def __init__(self, cloud: Cloud, plan: Plan, service: str, stage: str) -> None:
        self._cloud, self._plan, self._service = cloud, plan, service
        self.stage, self.kind = stage, f"{service}-{stage}"
        self._regions = plan.batch if service == "google-batch" else plan.vertex
        self._states = (_BATCH if service == "google-batch" else _VERTEX)[stage]

    def plan(self) -> list[Change]:
        return [
            Change(self.stage, self.kind, job["name"], None, "cancelled", f"job {_shown(job)}: {state} to cancelled")
            for job, state in self._jobs()
            if state in self._states and _ours(job.get("labels", {}), self._plan.labels)
        ]

    def _jobs(self) -> Iterator[tuple[Mapping[str, Any], str]]:
        for region in self._regions:
            at = f"v1/projects/{path_segment(self._plan.project)}/locations/{region}"
            if self._service == "google-batch":
                for job in self._cloud.pages("batch", f"{at}/jobs", "jobs", pageSize=500):
                    yield job, str(job.get("status", {}).get("state"))
            else:
                for job in self._cloud.pages(f"{region}-aiplatform", f"{at}/customJobs", "customJobs", pageSize=100):
                    yield job, str(job.get("state"))

    def pull(self, change: Change) -> None:
        """Cancel a job. One that has ended or was deleted meanwhile is no failure."""
        region = change.name.split("/")[3]
        api = "batch" if self._service == "google-batch" else f"{region}-aiplatform"
        try:
            self._cloud.call("POST", api, f"v1/{change.name}:cancel", {})
        except (NotThere, Unmet):
            return

    def restore(self, change: Change) -> str | None:
        raise AssertionError("what was cancelled is not restored")


class Records:
    """Lever that cancels jobs on TPUs and VMs of their own: it marks the record as cancelled, and deletes the machines
    or their request."""

    def __init__(self, cloud: Cloud, plan: Plan, stage: str) -> None:
        self._cloud, self._plan = cloud, plan
        self.stage, self.kind = stage, f"machines-{stage}"

    def plan(self) -> list[Change]:
        """Return the changes. A job between two attempts counts as waiting, since the next client would request
        machines for it again. A job that is already cancelled is included while its machines exist."""
        return [change for bucket in self._plan.buckets for change in self._changes(bucket)]

    def _changes(self, bucket: str) -> Iterator[Change]:
        names = self._names(bucket)
        with ThreadPoolExecutor(_READERS) as threads:
            records = [each for each, _ in threads.map(self._read, repeat(bucket), names)]
        for name, record in zip(names, records, strict=True):
            state = "" if record.get("ended") else self._state(record)
            if not state or (record.get("cancelled") and state in (*_NO_MACHINES, _GONE)):
                continue
            if (state in _WITH_MACHINES) == (self.stage == "running"):
                shown = f"{record['job_name']} ({record['kind']}:{bucket}/{record['name']})"
                text = f"job {shown}: {state} to cancelled"
                yield Change(self.stage, self.kind, f"{bucket}/{name}", None, "cancelled", text)

    def _state(self, record: Mapping[str, Any]) -> str:
        """Return the state of a TPU's queued resource if it was requested, otherwise that of the last attempt."""
        last = record["attempts"][-1]
        if record["kind"] not in _TPU_KINDS or last["state"] != "made":
            return str(last["state"])
        try:
            found = self._cloud.call("GET", "tpu", f"v2/{_queued(record)}")
        except NotThere:
            return _GONE
        return str(found.get("state", {}).get("state"))

    def pull(self, change: Change) -> None:
        bucket, _, name = change.name.partition("/")
        record, generation = self._read(bucket, name)
        if not record.get("cancelled"):
            told = json.dumps({**record, "cancelled": "the budget of its stack is spent"}, sort_keys=True, indent=1)
            query = {"uploadType": "media", "name": name, "ifGenerationMatch": generation}
            self._cloud.send("POST", "storage-upload", f"b/{path_segment(bucket)}/o", told.encode(), **query)
        self._removed(record)

    def _removed(self, record: Mapping[str, Any]) -> None:
        """Request the deletion of the attempt's machines, which get SIGTERM. The record's client does the rest."""
        place = (
            f"projects/{path_segment(record['body']['project'])}/zones/{path_segment(record['attempts'][-1]['zone'])}"
        )
        name = path_segment(record["attempts"][-1]["name"])
        try:
            if record["kind"] in _TPU_KINDS:
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
        """Return the names of the records of jobs, and of TPUs that the stack declares, which would be requested
        again."""
        at = f"b/{path_segment(bucket)}/o"
        return [
            each["name"]
            for folder in ("accel-jobs", "accel-queues")
            for each in self._cloud.pages(
                "storage", at, "items", matchGlob=f"{folder}/*/record.json", fields="items(name),nextPageToken"
            )
        ]

    def _read(self, bucket: str, name: str) -> tuple[dict[str, Any], str]:
        data, headers = self._cloud.send(
            "GET", "storage", f"b/{path_segment(bucket)}/o/{path_segment(name)}", alt="media"
        )
        return json.loads(data), headers["X-Goog-Generation"]


def _queued(record: Mapping[str, Any]) -> str:
    last, project = record["attempts"][-1], path_segment(record["body"]["project"])
    return f"projects/{project}/locations/{path_segment(last['zone'])}/queuedResources/{path_segment(last['name'])}"


def _ours(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return labels.get(_MAKER) == _JOBS and wanted.items() <= labels.items()


def _shown(job: Mapping[str, Any]) -> str:
    named = job.get("displayName") or job.get("labels", {}).get("accel-name") or ""
    return f"{named} ({job['name'].partition('/locations/')[2]})" if named else str(job["name"])


def _short(name: str) -> str:
    return name.rpartition("/")[2]
