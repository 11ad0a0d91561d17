"""A small API server for tests of the GKE backend: it keeps objects by path, and breaks calls as it is told."""

import json
import re
import threading
import uuid
from collections import Counter
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from accel.clouds.kubernetes.client import Api, Timing
from jobs.backends.gke.labels import Scope
from tests.support.serving import QuietServer

QUICK = Timing(connect_s=1, read_s=0.2, attempts=4, backoff_s=0.01, longest_wait_s=0.02, poll_s=0.02, silence_s=0.5)
SCOPE = Scope("acme-ml", "us-central1", "gpu", "team-a")
_PATH = re.compile(
    r"(?P<list>(?:/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/[^/]+)?/(?P<plural>[^/]+))(/(?P<name>[^/]+))?(/log)?"
)

Object = dict[str, Any]


class Cluster:
    """`objects` by path; `faults` of the next calls by method and plural, such as `POST jobs`:

    reset, hang, a status (nothing was done); accept+reset, accept+hang, accept+500, accept+garbage (it was).
    """

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.logs: dict[str, list[str]] = {}
        self.faults: dict[str, list[str]] = {}
        self.calls: Counter[str] = Counter()
        self.missing: set[str] = set()
        """Kinds that the cluster does not have."""
        self.forbidden: set[str] = set()
        self._lock = threading.Lock()
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # an answer is written in two parts, and the second would wait

            def handle_any(self) -> None:
                cluster.answer(self)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *arguments: Any) -> None: ...

        self.http = QuietServer(Handler)

    def api(self) -> Api:
        return Api(self.http.url, None, lambda: "token", timing=QUICK)

    def stop(self) -> None:
        self.http.stop()

    def put(self, path: str, body: Object) -> Object:
        """An object, as a controller makes it."""
        metadata = {"uid": uuid.uuid4().hex, "creationTimestamp": "2026-01-02T03:04:05Z", **body.get("metadata", {})}
        self.objects[f"{path}/{metadata['name']}"] = {"kind": "Any", **body, "metadata": metadata}
        return self.objects[f"{path}/{metadata['name']}"]

    def answer(self, call: Any) -> None:
        if call.path == "/api":
            self._reply(call, 200, json.dumps({"kind": "APIVersions"}))
            return
        parts = urlsplit(call.path)
        match = _PATH.fullmatch(unquote(parts.path))
        assert match, call.path
        length = int(call.headers.get("Content-Length") or 0)
        body = json.loads(call.rfile.read(length)) if length else None
        with self._lock:
            verb = f"{call.command} {match['plural']}"
            self.calls[verb] += 1
            fault = self.faults[verb].pop(0) if self.faults.get(verb) else ""
            done = self._done(call.command, match, dict(parse_qsl(parts.query)), body) if _accepts(fault) else (500, {})
        how = fault.removeprefix("accept+")
        if how == "reset":
            call.close_connection = True
            call.connection.close()
            return
        if how == "hang":
            threading.Event().wait(0.4)
            call.close_connection = True
            return
        status, answer = done
        if how.isdigit():
            status, answer = int(how), _told(int(how), "Fault", f"fault {how}")
        text = "<html>no</html>" if how == "garbage" else answer if isinstance(answer, str) else json.dumps(answer)
        self._reply(call, status, text)

    def _reply(self, call: Any, status: int, text: str) -> None:
        call.send_response(status)
        call.send_header("Content-Length", str(len(text.encode())))
        call.end_headers()
        call.wfile.write(text.encode())

    def _done(self, method: str, match: re.Match[str], query: dict[str, str], body: Any) -> tuple[int, Any]:
        path, plural = f"{match['list']}/{match['name']}", match["plural"]
        if plural in self.missing:
            return 404, _told(404, "NotFound", "the server could not find the requested resource")
        if plural in self.forbidden:
            return 403, _told(403, "Forbidden", f"{plural} is forbidden: no")
        if match.group(0).endswith("/log"):
            return self._log(match["name"], query)
        if method == "POST":
            name = body["metadata"]["name"]
            if f"{match['list']}/{name}" in self.objects:
                return 409, _told(409, "AlreadyExists", f'{plural} "{name}" already exists')
            return 201, self.put(match["list"], body)
        if method == "GET" and match["name"] is None:
            return 200, {"kind": "List", "metadata": {}, "items": self._listed(match["list"], query)}
        if path not in self.objects:
            return 404, _told(404, "NotFound", f'{plural} "{match["name"]}" not found')
        if method == "DELETE":
            return 200, self.objects.pop(path)
        if method == "PATCH":
            _merge(self.objects[path], body)
        return 200, self.objects[path]

    def _listed(self, path: str, query: dict[str, str]) -> list[Object]:
        wanted = dict(each.split("=", 1) for each in query.get("labelSelector", "").split(",") if each)
        found = [each for key, each in self.objects.items() if key.rpartition("/")[0] == path]
        found = [each for each in found if wanted.items() <= each["metadata"].get("labels", {}).items()]
        for each in filter(None, query.get("fieldSelector", "").split(",")):
            name, equals, value = re.split(r"(!?=)", each, maxsplit=1)
            found = [one for one in found if (_field(one, name) == value) is (equals == "=")]
        return found[: int(query.get("limit", 500))]

    def _log(self, name: str, query: dict[str, str]) -> tuple[int, Any]:
        if name not in self.logs:
            return 400, _told(
                400, "BadRequest", f'container "main" in pod "{name}" is waiting to start: ContainerCreating'
            )
        since = query.get("sinceTime", "")
        lines = [line for line in self.logs[name] if line[:19] >= since[:19]]
        if "timestamps" not in query:
            lines = [line.partition(" ")[2] for line in lines]
        lines = lines[-int(query["tailLines"]) :] if "tailLines" in query else lines
        return 200, "".join(f"{line}\n" for line in lines)


def _accepts(fault: str) -> bool:
    return fault == "" or fault.startswith("accept+")


def _told(code: int, reason: str, message: str) -> Object:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


def _merge(old: Object, patch: Object) -> None:
    for key, value in patch.items():
        if isinstance(value, dict):
            _merge(old.setdefault(key, {}), value)
        elif value is None:
            old.pop(key, None)
        else:
            old[key] = value


def _field(found: Object, path: str) -> Any:
    for name in path.split("."):
        found = found.get(name, {})
    return found or ""
