"""REST client of the sandbox's API server: paths as in the API, bodies as in YAML."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import requests
from requests.adapters import HTTPAdapter

PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_THREADS = 64  # as many as the engine's stand-ins serve at once
_CONNECT_S, _READ_S = 5, 60
_PATIENCE_S, _AGAIN_S = 20, 0.2

Object = dict[str, Any]


def conditions(item: Object) -> dict[str, Object]:
    """Return the conditions of an object's status by type."""
    return {each["type"]: each for each in (item.get("status") or {}).get("conditions") or []}


def has_condition(item: Object, kind: str) -> bool:
    return conditions(item).get(kind, {}).get("status") == "True"


class Refusal(Exception):
    """Refusal of the API server: HTTP status, the reason of its Status object, its message and details. Status 0,
    reason `Unreachable`: it did not answer."""

    def __init__(self, status: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status, self.reason, self.message, self.details = status, reason, message, details or {}


class Cluster:
    """Control plane, with the rights of system:masters. Every method may be called by many threads, and raises Refusal.
    A query has the API's names: `list(path, labelSelector="a=b")`."""

    def __init__(self, url: str, token: str, ca: Path) -> None:
        self.url, self.folder = url.rstrip("/"), ca.parent
        self._http = requests.Session()
        # Neither a proxy, nor a .netrc, nor a user's CA bundle stands between us and loopback.
        self._http.trust_env = False
        self._http.mount("https://", HTTPAdapter(pool_maxsize=_THREADS))
        self._http.verify = str(ca)
        self._http.headers["Authorization"] = f"Bearer {token}"
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, home: Path) -> Self:
        """Return the control plane that runs for a sandbox's folder. Raises FileNotFoundError where none does."""
        told = json.loads((home / "kubernetes.json").read_text())
        return cls(told["url"], told["token"], home / "kubernetes" / "ca.crt")

    def get(self, path: str, **query: Any) -> Object:
        return self._ask("GET", path, query).json()

    def list(self, path: str, **query: Any) -> list[Object]:
        """Return the items of a collection, each with the apiVersion and kind that a list leaves out."""
        answer = self.get(path, **query)
        about = {"apiVersion": answer["apiVersion"], "kind": answer["kind"].removesuffix("List")}
        return [{**about, **item} for item in answer.get("items") or []]

    def text(self, path: str, **query: Any) -> str:
        """Return an answer that is no object, such as that of `/readyz` or of a pod's log."""
        return self._ask("GET", path, query).text

    def create(self, path: str, body: Object, **query: Any) -> Object:
        return self._ask("POST", path, query, body).json()

    def replace(self, path: str, body: Object, **query: Any) -> Object:
        return self._ask("PUT", path, query, body).json()

    def patch(
        self, path: str, body: Any, kind: Literal["merge", "strategic", "json"] = "merge", **query: Any
    ) -> Object:
        """Change an object. Custom resources have no strategic patch."""
        return self._ask("PATCH", path, query, body, PATCHES[kind]).json()

    def apply(self, path: str, body: Object, force: bool = True, manager: str = "sandbox", **query: Any) -> Object:
        """Apply an object on the server's side, as `manager`. Without `force` a conflict is refused with 409."""
        query = {"fieldManager": manager, "force": str(force).lower(), **query}
        return self._ask("PATCH", path, query, body, PATCHES["apply"]).json()

    def delete(self, path: str, body: Object | None = None, **query: Any) -> Object:
        """Delete an object, or all of a collection; finalizers may keep it for a while. `body`: DeleteOptions."""
        return self._ask("DELETE", path, query, body).json()

    def watch(self, path: str, **query: Any) -> Iterator[Object]:
        """Yield events {"type", "object"} until the server ends the watch (`timeoutSeconds`, by default some half an
        hour). Without a resourceVersion it begins with an ADDED for every existing object."""
        answer = self._ask("GET", path, {"watch": "1", **query}, stream=True)
        try:
            for line in answer.iter_lines(chunk_size=None):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise _refusal(event["object"].get("code", 500), event["object"])
                yield event
        except requests.RequestException as error:
            raise Refusal(0, "Unreachable", f"GET {path}: {error}") from error
        finally:
            answer.close()

    def path(self, api_version: str, kind: str, name: str = "", namespace: str | None = None) -> str:
        """Return the path of an object, or without a name that of its collection. Raise Refusal 404 for an unknown
        kind. A namespaced kind without a namespace: `default` with a name, the collection of all namespaces without."""
        plural, namespaced = self._kind(api_version, kind)
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if namespaced and (namespace or name):
            root += f"/namespaces/{namespace or 'default'}"
        return f"{root}/{plural}/{name}".rstrip("/")

    def _kind(self, api_version: str, kind: str) -> tuple[str, bool]:
        with self._lock:
            if (api_version, kind) not in self._kinds:
                root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
                for each in self.get(root)["resources"]:
                    if "/" not in each["name"]:
                        self._kinds[api_version, each["kind"]] = (each["name"], each["namespaced"])
            try:
                return self._kinds[api_version, kind]
            except KeyError:
                raise Refusal(404, "NotFound", f'no matches for kind "{kind}" in version "{api_version}"') from None

    def _ask(
        self,
        verb: str,
        path: str,
        query: Mapping[str, Any],
        body: Any = None,
        content: str = "application/json",
        stream: bool = False,
    ) -> requests.Response:
        give_up = time.monotonic() + _PATIENCE_S
        while True:
            try:
                answer = self._http.request(
                    verb,
                    self.url + path,
                    params=query,
                    data=None if body is None else json.dumps(body),
                    headers={} if body is None else {"Content-Type": content},
                    timeout=(_CONNECT_S, None if stream else _READ_S),
                    stream=stream,
                )
            except requests.RequestException as error:
                raise Refusal(0, "Unreachable", f"{verb} {path}: {error}") from error
            # Not carried out, and to be retried, as client-go does: a custom resource whose definition is new, a
            # throttle.
            if answer.ok or "Retry-After" not in answer.headers or time.monotonic() > give_up:
                break
            answer.close()
            time.sleep(_AGAIN_S)
        if answer.ok:
            return answer
        try:
            status = answer.json()
        except ValueError:
            status = {"message": answer.text.strip()}
        raise _refusal(answer.status_code, status)


def _refusal(code: int, status: Mapping[str, Any]) -> Refusal:
    return Refusal(code, status.get("reason", ""), status.get("message", ""), status.get("details"))
