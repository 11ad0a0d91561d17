"""Objects of a kind, kept current by a watch: a read costs no request."""

import threading

from .client import Cluster, Object, Refusal

_WATCH_S = 240
_AGAIN_S = 0.5


def key(body: Object) -> tuple[str, str]:
    return body["metadata"].get("namespace", ""), body["metadata"]["name"]


class Store:
    """Objects of a collection. Every change sets `changed`; `wait` returns once the collection has been read."""

    def __init__(self, cluster: Cluster, path: str, changed: threading.Event, stop: threading.Event) -> None:
        self._cluster, self._path, self._changed, self._stop = cluster, path, changed, stop
        self._items: dict[tuple[str, str], Object] = {}
        self._read = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._follow, daemon=True).start()

    def wait(self) -> None:
        while not self._read.wait(0.1) and not self._stop.is_set():
            continue

    def all(self) -> list[Object]:
        with self._lock:
            return list(self._items.values())

    def get(self, namespace: str, name: str) -> Object | None:
        with self._lock:
            return self._items.get((namespace, name))

    def put(self, body: Object) -> None:
        """Store the answer to a request of ours, before the watch delivers it."""
        with self._lock:
            known = self._items.get(key(body))
            if known is None or _version(known) < _version(body):
                self._items[key(body)] = body

    def drop(self, body: Object) -> None:
        with self._lock:
            self._items.pop(key(body), None)

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                found = self._cluster.get(self._path)
                with self._lock:
                    self._items = {key(item): item for item in found.get("items") or []}
                self._read.set()
                self._changed.set()
                version = found["metadata"]["resourceVersion"]
                for event in self._cluster.watch(self._path, resourceVersion=version, timeoutSeconds=_WATCH_S):
                    self._take(event["type"], event["object"])
            except Refusal:  # the version is too old, or the server does not answer: from the start
                self._stop.wait(_AGAIN_S)

    def _take(self, kind: str, body: Object) -> None:
        if kind == "DELETED":
            self.drop(body)
        elif kind in ("ADDED", "MODIFIED"):
            self.put(body)
        self._changed.set()


def _version(body: Object) -> int:
    return int(body["metadata"]["resourceVersion"])
