"""Events about objects, as controllers record them: a repeated one is counted, not recorded again."""

import secrets
import threading
import time
from datetime import UTC, datetime

from .client import Cluster, Object, Refusal

_AGAIN_S = 10  # the autoscaler looks at each pod every ten seconds


def stamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class Events:
    """Recorder of one component's events; a repeated one at most every ten seconds."""

    def __init__(self, cluster: Cluster, component: str) -> None:
        self._cluster, self._component = cluster, component
        self._known: dict[tuple[str, str, str], tuple[str, int, float]] = {}
        self._lock = threading.Lock()

    def record(self, about: Object, reason: str, message: str, warning: bool = False) -> None:
        metadata = about["metadata"]
        known = (metadata["uid"], reason, message)
        namespace = metadata.get("namespace", "default")
        with self._lock:
            name, count, last = self._known.get(known, ("", 0, 0.0))
            if name and time.monotonic() < last + _AGAIN_S:
                return
            name = name or f"{metadata['name']}.{secrets.token_hex(8)}"
            self._known[known] = (name, count + 1, time.monotonic())
        path = f"/api/v1/namespaces/{namespace}/events"
        try:
            if count:
                self._cluster.patch(f"{path}/{name}", {"count": count + 1, "lastTimestamp": stamp()})
            else:
                self._cluster.create(path, self._body(about, name, namespace, reason, message, warning))
        except Refusal as error:
            if error.status not in (404, 409, 403):  # its namespace or the event itself was deleted
                raise

    def _body(self, about: Object, name: str, namespace: str, reason: str, message: str, warning: bool) -> Object:
        metadata = about["metadata"]
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": about.get("apiVersion", "v1"),
                "kind": about.get("kind", "Pod"),
                "name": metadata["name"],
                "namespace": metadata.get("namespace", ""),
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "reason": reason,
            "message": message,
            "type": "Warning" if warning else "Normal",
            "count": 1,
            "firstTimestamp": stamp(),
            "lastTimestamp": stamp(),
            "source": {"component": self._component},
        }
