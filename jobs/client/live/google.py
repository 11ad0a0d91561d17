"""Jobs that have not ended on GKE clusters, on VMs of their own, of Google Batch and of Vertex AI."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from math import prod
from typing import Any, TypeVar

from accel.catalog import UnknownName, machine
from accel.clouds.google.api import Google
from accel.clouds.kubernetes.clusters import Clusters
from accel.contract.gke import GkeTarget
from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.google_vms import GceTarget, TpuVmTarget
from accel.diagnostics.errors import NotFound
from accel.json_values import entries, object_at, objects_at
from accel.threads import in_threads

from ...backends.base import Listing, Phase, Status
from ...backends.gke import GkeBackend, lookup, machines
from ...backends.gke import labels as marks
from ...backends.google_batch import labels as batch_marks
from ...backends.google_batch import lookup as batch_found
from ...backends.registry import of_target
from ...backends.vertex import labels as vertex_marks
from ...backends.vertex import lookup as vertex_found
from ...backends.vm.records import Records
from .job import JOBSETS, LIMIT, Live, ground, hours

NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


def on_gke(name: str, target: GkeTarget, now: datetime) -> Iterator[Live]:
    """Raise the cluster's error where the user may not list pods or nodes."""
    scope = marks.Scope(target.project, target.location, target.cluster, target.namespace)
    api = Clusters(scope, target).api
    pods: dict[str, list[dict[str, Any]]] = {}
    for pod in api.items(scope.core("pods"), labelSelector=f"{marks.OWNER}={marks.JOBS}", fieldSelector=NOT_ENDED):
        pods.setdefault(str(object_at(pod, "metadata", "labels").get(marks.OBJECT)), []).append(pod)
    pools = _pools(api) if pods else {}
    jobsets = _jobsets(api, scope) if target.jobset else set[str]()
    cluster = f"{target.project}/{target.location}/{target.cluster}"
    for status in GkeBackend(name, target).list(limit=LIMIT, ended=False):
        own = [pod for pod in pods.get(status.ref.id, []) if object_at(pod, "spec").get("nodeName")]
        places = {f"gke:{cluster}", f"namespace:{target.namespace}"}
        places |= {f"localqueue:{target.namespace}/{target.queue}"} if target.queue else set[str]()
        places |= {f"pool:{cluster}/{pools.get(str(object_at(pod, 'spec')['nodeName']), '')}" for pod in own}
        places |= {f"definition:{JOBSETS}"} if status.ref.id in jobsets else set[str]()
        counted = [(_count(pod), lookup.at(object_at(pod, "status").get("startTime"))) for pod in own]
        spans = [hours(sum(counts), since, now) for counts, since in counted]
        yield Live(
            ref=str(status.ref),
            name=status.name,
            phase=str(status.phase),
            target=name,
            accelerators=sum(sum(counts) for counts, _ in counted),
            hours=sum(span for span in spans if span is not None),
            places=frozenset(places),
            unit="TPU chip" if any(chips for (_, chips), _ in counted) else "GPU",
        )


def _pools(api: Any) -> dict[str, str]:
    labels = {
        object_at(node, "metadata")["name"]: object_at(node, "metadata", "labels")
        for node in api.items("/api/v1/nodes")
    }
    return {name: str(each.get(machines.NODEPOOL, "")) for name, each in labels.items()}


def _jobsets(api: Any, scope: marks.Scope) -> set[str]:
    try:
        return {object_at(each, "metadata")["name"] for each in api.items(scope.jobsets)}
    except NotFound:  # no such kind
        return set()


def _count(pod: dict[str, Any]) -> tuple[int, int]:
    """Return the GPUs and TPU chips that the pod's own container requests."""
    asked = object_at(lookup.main(objects_at(object_at(pod, "spec"), "containers")), "resources", "limits")
    return int(asked.get(machines.GPUS) or 0), int(asked.get(machines.CHIPS) or 0)


T = TypeVar("T")
AT_ONCE = 8


def on_vms(name: str, target: TpuVmTarget | GceTarget, now: datetime) -> Iterator[Live]:
    """Count machines from the request for them where nobody has seen them start."""
    records = Records(Google(), target.bucket)
    for status, (record, _) in _looked(name, target, records.read):
        chips = int(record.body.get("chips") or 0)
        count = chips or int(record.body.get("gpus") or 0) * record.hosts
        asked = datetime.fromisoformat(record.last.made) if record.last.made else None
        yield _live(name, target, status, count, now, since=asked, unit="TPU chip" if chips else "GPU")


def on_batch(name: str, target: GoogleBatchTarget, now: datetime) -> Iterator[Live]:
    """Count running tasks from the start of their job, which is when the first began."""
    google, scope = Google(), batch_marks.Scope(target.project, target.region)
    for status, job in _looked(name, target, lambda known: batch_found.look(google, scope, known)):
        running, gpus = job.counts.get("RUNNING", 0), _gpus(job.policy)
        each = (gpus or 0) / int(job.group.get("taskCountPerNode") or 1)
        found = _live(name, target, status, round(running * each), now)
        yield replace(found, hours=None) if running and gpus is None else found


def on_vertex(name: str, target: VertexTarget, now: datetime) -> Iterator[Live]:
    """Count the replicas of all pools, from the start of the job."""
    google, scope = Google(), vertex_marks.Scope(target.project, target.region)
    for status, job in _looked(name, target, lambda known: vertex_found.look(google, scope, known)):
        held = [_of_pool(pool) for pool in job.pools]
        kept = str(job.spec.get("persistentResourceId") or "")
        own = {f"persistent:{kept}"} if kept else set[str]()
        unit = next((unit for count, unit in held if count), "GPU")
        yield _live(name, target, status, sum(count for count, _ in held), now, own, unit=unit)


def _looked(name: str, target: Any, look: Callable[[str], T]) -> Iterator[tuple[Status, T]]:
    """Yield each job that has not ended, with the result of `look` for its id; skip those that have gone meanwhile."""
    backend = of_target(name, target)
    assert isinstance(backend, Listing)

    def one(status: Status) -> list[tuple[Status, T]]:
        with suppress(NotFound):
            return [(status, look(status.ref.id))]
        return []

    for seen in in_threads(one, list(backend.list(limit=LIMIT, ended=False)), AT_ONCE):
        yield from seen


def _live(
    name: str,
    target: TpuVmTarget | GceTarget | GoogleBatchTarget | VertexTarget,
    status: Status,
    count: int,
    now: datetime,
    own: set[str] | None = None,
    since: datetime | None = None,
    unit: str = "GPU",
) -> Live:
    """Return a live job. `own` has its own places, instead of the persistent resource, which not every job uses."""
    places = {place for place in ground(target) if not place.startswith("persistent:")} | (own or set())
    held = count if status.phase is not Phase.QUEUED else 0
    return Live(
        ref=str(status.ref),
        name=status.name,
        phase=str(status.phase),
        target=status.target or name,
        accelerators=held,
        hours=hours(held, status.started or since, now),
        places=frozenset(places),
        unit=unit,
    )


def _of_pool(pool: Mapping[str, Any]) -> tuple[int, str]:
    """Return the accelerators of a WorkerPoolSpec, and their unit. TPU v2 and v3 are requested by cores."""
    spec, replicas = object_at(pool, "machineSpec"), int(pool.get("replicaCount") or 0)
    if topology := str(spec.get("tpuTopology") or ""):
        return replicas * prod(int(side) for side in topology.split("x")), "TPU chip"
    cores = str(spec.get("acceleratorType")).startswith("TPU_")
    return replicas * int(spec.get("acceleratorCount") or 0), "TPU core" if cores else "GPU"


def _gpus(policy: Mapping[str, Any]) -> int | None:
    """Return the GPUs of one VM; None for a machine that only an instance template names, or only Google knows."""
    attached = [int(object_at(each).get("count") or 0) for each in entries(policy.get("accelerators"))]
    if attached:
        return sum(attached)
    try:
        return machine("gcp", str(policy.get("machineType") or "")).whole_accelerators
    except UnknownName:
        return None
