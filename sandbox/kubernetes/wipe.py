"""Reset of the cluster to its start: users' objects are deleted, as with a user's cluster that is deleted."""

import json
import time
from collections.abc import Callable, Iterator

from . import bootstrap
from .client import Cluster, Object, Refusal

FIRST = "first.json"
_WIPE_S = 60
_PAUSE_S = 0.1
# Created, and recreated, by the control plane for something else, and deleted with it.
_FOLLOWERS = frozenset({"endpoints", "endpointslices", "events", "ipaddresses", "leases"})
_MADE_AGAIN = frozenset(
    {("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default"), ("services", "kubernetes")}
)
_FOLLOW_A_NAMESPACE = (
    *(("/api/v1", plural) for plural in ("configmaps", "endpoints", "events", "serviceaccounts")),
    ("/apis/coordination.k8s.io/v1", "leases"),
    ("/apis/discovery.k8s.io/v1", "endpointslices"),
)
_AUTOMATIC = "kube-aggregator.kubernetes.io/automanaged"
_NOW = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background"}


def remember(cluster: Cluster) -> None:
    """Record what exists at the start."""
    (cluster.folder / FIRST).write_text(json.dumps([path for path, _ in _objects(cluster)]))


def wipe(cluster: Cluster) -> None:
    """Delete everything that was created since the start, finalizers or not, and recreate what is missing since.
    Nothing is left when it returns. Raise Refusal with the reason `Timeout` if something comes back, or does not go."""
    first = frozenset(json.loads((cluster.folder / FIRST).read_text()))
    give_up = time.monotonic() + _WIPE_S
    while left := [(path, found) for path, found in _objects(cluster) if path not in first]:
        if time.monotonic() > give_up:
            raise Refusal(0, "Timeout", f"still there after {_WIPE_S} s: {', '.join(path for path, _ in left[:5])}")
        namespaces = [path for path, found in left if found["kind"] == "Namespace"]
        for path, found in left:
            if path not in namespaces:
                _delete(cluster, path, found)
        if len(namespaces) == len(left):
            for path in namespaces:
                _close(cluster, path)
        time.sleep(_PAUSE_S)
    for namespace in bootstrap.NAMESPACES:
        _gone(lambda path=f"/api/v1/namespaces/{namespace}/events": cluster.delete(path))
    bootstrap.apply(cluster)


def _delete(cluster: Cluster, path: str, found: Object) -> None:
    about = found["metadata"]
    if "deletionTimestamp" not in about:
        _gone(lambda: cluster.delete(path, _NOW))
    if about.get("finalizers"):
        # Objects that wait for others before they go: a queue for its jobs, a volume for its pods.
        _gone(lambda: cluster.patch(path, {"metadata": {"finalizers": None}}))


def _close(cluster: Cluster, path: str) -> None:
    """Delete a namespace in which only followers are left. Its controller would wait five seconds before it looks."""
    _gone(lambda: cluster.delete(path))
    for root, plural in _FOLLOW_A_NAMESPACE:
        cluster.delete(f"{root}{path.removeprefix('/api/v1')}/{plural}")
    _gone(lambda: cluster.replace(f"{path}/finalize", {**cluster.get(path), "spec": {"finalizers": []}}))


def _gone(do: Callable[[], object]) -> None:
    try:
        do()
    except Refusal as refusal:
        if refusal.status not in (404, 409):
            raise


def _objects(cluster: Cluster) -> Iterator[tuple[str, Object]]:
    """Yield everything that can be deleted, with its path."""
    groups = cluster.get("/apis")["groups"]
    for root in ("/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)):
        for kind in cluster.get(root)["resources"]:
            plural = kind["name"]
            if "/" in plural or plural in _FOLLOWERS or not {"list", "delete"} <= set(kind["verbs"]):
                continue
            try:
                items = cluster.list(f"{root}/{plural}")
            except Refusal as refusal:
                if refusal.status == 404:  # a custom kind that goes with its definition
                    continue
                raise
            for item in items:
                about = item["metadata"]
                if (plural, about["name"]) not in _MADE_AGAIN and _AUTOMATIC not in about.get("labels", {}):
                    place = f"/namespaces/{about['namespace']}" if kind["namespaced"] else ""
                    yield f"{root}{place}/{plural}/{about['name']}", item
