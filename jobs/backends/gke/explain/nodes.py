"""What the cluster's nodes say of a pod that waits: GPUs without a driver, and labels that no node has."""

from typing import Any

from accel.catalog import nearest
from accel.clouds.google.rest import entries
from accel.clouds.kubernetes.responses import part, parts

from ...base import Explanation
from .. import lookup
from ..machines import GPU_LABEL, GPUS
from .facts import Facts

DRIVER_S = 600
"""A driver is there within a few minutes of a node's start. P12: one that is not, will not come."""


def without_driver(facts: Facts) -> Explanation | None:
    """Nodes with the pod's kind of GPU are Ready for long, and offer none."""
    selector = part(facts.job.pod_spec, "nodeSelector")
    if not facts.gpus or not facts.texts("scheduler") or facts.nodes is None:
        return None
    kind = selector.get(GPU_LABEL)
    fitting = [node for node in facts.nodes if _label(node, GPU_LABEL) and kind in (None, _label(node, GPU_LABEL))]
    bare = [node for node in fitting if not _offers(node) and _ready_s(facts, node) > DRIVER_S]
    if not bare or any(_offers(node) for node in fitting):
        return None
    names = ", ".join(str(part(node, "metadata").get("name")) for node in bare[:3])
    driver = _label(bare[0], "cloud.google.com/gke-gpu-driver-version") or "no label gke-gpu-driver-version"
    return Explanation(
        "driver-not-ready",
        f"{len(bare)} nodes with {_label(bare[0], GPU_LABEL)} have been Ready for over ten minutes and offer no GPU",
        (f"{names}: {GPUS} allocatable 0; driver: {driver}", *facts.texts("scheduler")[:1]),
        "`kubectl -n kube-system get pods -o wide` shows the driver's installer on the node; a pool has one owner of "
        "its driver: GKE, the DaemonSet or the operator",
    )


def mislabelled(facts: Facts) -> Explanation | None:
    """No node, and no pool that the autoscaler knows, has a label that the pod asks for."""
    texts = [*facts.texts("scheduler"), *facts.texts("no-scale")]
    if not texts or not all("didn't match Pod's node affinity/selector" in text for text in texts):
        return None
    if facts.nodes is None or "no-scale" not in _told(facts):
        return None
    for name, wanted in _wanted(facts).items():
        known = sorted({value for node in facts.nodes if (value := _label(node, name))})
        if known and not set(wanted) & set(known):
            near = nearest(wanted[0], known) or known[:3]
            return Explanation(
                "no-such-node",
                f"no node has {name}={', '.join(wanted)}",
                (f"nodes have {', '.join(known[:6])}", *texts[:1]),
                f"nearest: {', '.join(near)}; the pool may have been replaced since: submit the job again",
            )
    return None


def _told(facts: Facts) -> tuple[str, ...]:
    return tuple(where for where in ("scaling", "no-scale", "failed-scale") if facts.texts(where))


def _wanted(facts: Facts) -> dict[str, list[str]]:
    """The labels that the pod asks for: of its selector, and of the first term of its affinity."""
    wanted = {name: [str(value)] for name, value in part(facts.job.pod_spec, "nodeSelector").items()}
    required = part(facts.job.pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for term in parts(required, "nodeSelectorTerms")[:1]:
        for each in parts(term, "matchExpressions"):
            if each.get("operator") == "In":
                wanted[str(each.get("key"))] = [str(value) for value in entries(each.get("values"))]
    return wanted


def _label(node: dict[str, Any], name: str) -> str:
    return str(part(node, "metadata", "labels").get(name) or "")


def _offers(node: dict[str, Any]) -> bool:
    return str(part(node, "status", "allocatable").get(GPUS) or "0") != "0"


def _ready_s(facts: Facts, node: dict[str, Any]) -> float:
    """For how long; 0 for a node that is not Ready."""
    ready = lookup.condition(node, "Ready")
    since = lookup.at((ready or {}).get("lastTransitionTime"))
    return (facts.now - since).total_seconds() if since else 0.0
