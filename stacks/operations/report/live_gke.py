"""Jobs of a namespace of a GKE cluster that have not ended, with the node pools that their pods are on."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from accel.clouds.kubernetes.responses import part, parts
from accel.contract.gke import GkeTarget
from accel.diagnostics.errors import NotFound
from jobs.backends.gke import GkeBackend, lookup, machines
from jobs.backends.gke import labels as marks
from jobs.backends.gke.clusters import Clusters

from .live import LIMIT, Live, hours
from .threats import JOBSETS

LIVE = "status.phase!=Succeeded,status.phase!=Failed"


def jobs_of(name: str, target: GkeTarget, now: datetime) -> Iterator[Live]:
    """Raises what the cluster answers to who may not list pods or nodes."""
    scope = marks.Scope(target.project, target.location, target.cluster, target.namespace)
    api = Clusters(scope, target).api
    pods: dict[str, list[dict[str, Any]]] = {}
    for pod in api.items(scope.core("pods"), labelSelector=f"{marks.OWNER}={marks.JOBS}", fieldSelector=LIVE):
        pods.setdefault(str(part(pod, "metadata", "labels").get(marks.OBJECT)), []).append(pod)
    pools = _pools(api) if pods else {}
    jobsets = _jobsets(api, scope) if target.jobset else set[str]()
    cluster = f"{target.project}/{target.location}/{target.cluster}"
    for status in GkeBackend(name, target).list(limit=LIMIT, ended=False):
        own = [pod for pod in pods.get(status.ref.id, []) if part(pod, "spec").get("nodeName")]
        places = {f"gke:{cluster}", f"namespace:{target.namespace}"}
        places |= {f"localqueue:{target.namespace}/{target.queue}"} if target.queue else set[str]()
        places |= {f"pool:{cluster}/{pools.get(str(part(pod, 'spec')['nodeName']), '')}" for pod in own}
        places |= {f"definition:{JOBSETS}"} if status.ref.id in jobsets else set[str]()
        counted = [(_count(pod), lookup.at(part(pod, "status").get("startTime"))) for pod in own]
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
    """Node pools by the names of nodes."""
    labels = {part(node, "metadata")["name"]: part(node, "metadata", "labels") for node in api.items("/api/v1/nodes")}
    return {name: str(each.get(machines.NODEPOOL, "")) for name, each in labels.items()}


def _jobsets(api: Any, scope: marks.Scope) -> set[str]:
    try:
        return {part(each, "metadata")["name"] for each in api.items(scope.jobsets)}
    except NotFound:  # no such kind
        return set()


def _count(pod: dict[str, Any]) -> tuple[int, int]:
    """GPUs and TPU chips that the pod's own container asked for."""
    asked = part(lookup.main(parts(part(pod, "spec"), "containers")), "resources", "limits")
    return int(asked.get(machines.GPUS) or 0), int(asked.get(machines.CHIPS) or 0)
