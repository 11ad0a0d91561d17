"""Metadata server of one machine, on a port of its own. Its form is Google's:
https://docs.cloud.google.com/compute/docs/metadata/querying-metadata. The answers to a request without the header, and
about guest attributes that are not enabled, are those of https://github.com/salrashid123/gce_metadata_server"""

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ... import peers
from ...loopback import foreign
from .. import PROJECT, PROJECT_NUMBER
from .machine import Machine

ROOT = "/computeMetadata/v1/"
_GUEST = "instance/guest-attributes"
_NOT_FOUND = "<!DOCTYPE html>\n<html lang=en>\n<title>Error 404 (Not Found)!!1</title>\n"
_DISABLED = "Guest attributes endpoint access is disabled."

Answer = tuple[int, str, str]
"""Status, content type, text."""


class Metadata:
    """Metadata of one machine, and its guest attributes. `login(user)` returns an OS Login profile, or None."""

    def __init__(self, machine: Machine, token: str, login: Callable[[str], Any]) -> None:
        self.guest: dict[str, dict[str, str]] = {}
        self._machine, self._token, self._login = machine, token, login
        self._metadata, self._preempted, self._closed = dict(machine.metadata), False, False
        self._changed = threading.Condition()
        self._server: _Server | None = None

    def serve(self) -> None:
        """Start to serve, in threads."""
        self._server = _Server(self)

    @property
    def host(self) -> str:
        """Host and port of the running server, as in GCE_METADATA_HOST."""
        assert self._server
        return f"127.0.0.1:{self._server.server_address[1]}"

    def change(self, metadata: Mapping[str, str]) -> None:
        with self._changed:
            self._metadata = dict(metadata)
            self._changed.notify_all()

    def preempt(self) -> None:
        with self._changed:
            self._preempted = True
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._server:
            self._server.shutdown()
            self._server.server_close()

    def get(self, path: str, query: Mapping[str, str]) -> tuple[Answer, str]:
        """Return the answer and its ETag. With `wait_for_change`, waits until the answer changes."""
        if path.startswith("oslogin/"):  # without our lock: the world's is held while it is read
            return self._os_login(path.strip("/"), query), ""
        last = query.get("last_etag")
        until = time.monotonic() + float(query.get("timeout_sec") or threading.TIMEOUT_MAX / 2)
        with self._changed:
            while True:
                answer = self._answer(path, query)
                etag = hashlib.sha256(answer[2].encode()).hexdigest()[:16]
                last = etag if last is None else last
                left = until - time.monotonic()
                waits = query.get("wait_for_change", "").lower() == "true" and answer[0] == 200
                if not waits or etag != last or left <= 0 or self._closed:
                    return answer, etag
                self._changed.wait(left)

    def _answer(self, path: str, query: Mapping[str, str]) -> Answer:
        account = path.removesuffix("/token").removeprefix("instance/service-accounts/")
        if path.endswith("/token") and account in ("default", self._machine.account) and self._machine.account:
            return _json({"access_token": self._token, "expires_in": 3599, "token_type": "Bearer"})
        if path.startswith(_GUEST) and not self._open():
            return 403, "text/html", _DISABLED
        try:
            found = at(tree(self._machine, self._metadata, self.guest, self._preempted), path)
        except KeyError:
            return 404, "text/html", _NOT_FOUND
        deep = query.get("recursive", "").lower() == "true"
        kind = query.get("alt") or ("json" if deep and is_directory(found) else "text")
        if kind == "json":
            shown = found if not is_directory(found) or deep else listing(found).split()
            return _json(as_json(shown, path.strip("/").rpartition("/")[2]))
        text = str(found) if not is_directory(found) else as_text(found) if deep else listing(found)
        return 200, "application/text", text

    def _open(self) -> bool:
        return self._metadata.get("enable-guest-attributes", "").upper() == "TRUE"

    def _os_login(self, path: str, query: Mapping[str, str]) -> Answer:
        """Answer sshd's helper: https://github.com/GoogleCloudPlatform/guest-oslogin"""
        if path == "oslogin/users" and (profile := self._login(query.get("username", ""))):
            return _json({"loginProfiles": [profile]})
        if path == "oslogin/authorize":
            return _json({"success": True})
        return 404, "text/html", _NOT_FOUND

    def put(self, path: str, value: str | None) -> Answer:
        """Set a guest attribute, or delete it (None)."""
        place = path.removeprefix(f"{_GUEST}/").split("/")
        if not path.startswith(f"{_GUEST}/") or len(place) != 2 or not all(place):
            return 404, "text/html", _NOT_FOUND
        with self._changed:
            if not self._open():
                return 403, "text/html", _DISABLED
            namespace, key = place
            if value is None:
                self.guest.get(namespace, {}).pop(key, None)
            else:
                self.guest.setdefault(namespace, {})[key] = value
            self._changed.notify_all()
        return 200, "application/text", ""


def _json(value: Any) -> Answer:
    return 200, "application/json", json.dumps(value)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, metadata: Metadata) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.metadata = metadata
        threading.Thread(target=self.serve_forever, args=(0.2,), daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: a script that is killed while it waits for an answer is no fault."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/":
            self._send((200, "application/text", "computeMetadata/\n"), "")
        elif self._let_in(parts.path):
            self._send(*self.server.metadata.get(parts.path.removeprefix(ROOT), dict(parse_qsl(parts.query))))

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        parts = urlsplit(self.path)
        if self._let_in(parts.path):
            self._send(self.server.metadata.put(parts.path.removeprefix(ROOT), body), "")

    def do_DELETE(self) -> None:
        parts = urlsplit(self.path)
        if self._let_in(parts.path):
            self._send(self.server.metadata.put(parts.path.removeprefix(ROOT), None), "")

    def _let_in(self, path: str) -> bool:
        port = self.server.server_address[1]
        if not peers.ours(self.client_address[1], port) or foreign(
            port, self.headers.get("Host"), self.headers.get("Origin")
        ):
            self._send((403, "text/html", "the sandbox tells this to its own user alone\n"), "")
            return False
        if self.headers.get("Metadata-Flavor") != "Google":
            self._send((403, "text/html", "Missing required header: Metadata-Flavor\n"), "")
            return False
        if not path.startswith(ROOT):
            self._send((404, "text/html", _NOT_FOUND), "")
            return False
        return True

    def _send(self, answer: Answer, etag: str) -> None:
        status, kind, text = answer
        data = text.encode()
        self.send_response(status)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Type", kind)
        if etag:
            self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_BELOW = ("attributes", "guest-attributes")  # whose names are their authors'


def tree(machine: Machine, metadata: dict[str, str], guest: dict[str, dict[str, str]], preempted: bool) -> Any:
    """Return directories as dicts and lists, values as strings and numbers. Source:
    https://docs.cloud.google.com/compute/docs/metadata/predefined-metadata-keys"""
    account = {"aliases": "default", "email": machine.account, "scopes": "\n".join(SCOPES)}
    return {
        "instance": {
            "attributes": {**metadata, **machine.more},
            "guest-attributes": guest,
            "hostname": f"{machine.name}.{machine.zone}.c.{PROJECT}.internal",
            "id": int(machine.id or 0),
            "machine-type": f"projects/{PROJECT_NUMBER}/machineTypes/{machine.machine_type}",
            "maintenance-event": "NONE",
            "name": machine.name,
            "network-interfaces": [{"ip": machine.ip}],
            "preempted": "TRUE" if preempted else "FALSE",
            "service-accounts": {name: account for name in (machine.account, "default") if machine.account},
            "zone": f"projects/{PROJECT_NUMBER}/zones/{machine.zone}",
        },
        "project": {"attributes": {}, "numeric-project-id": int(PROJECT_NUMBER), "project-id": PROJECT},
    }


def at(found: Any, path: str) -> Any:
    for part in filter(None, path.split("/")):
        if isinstance(found, list) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        elif isinstance(found, dict) and part in found:
            found = found[part]
        else:
            raise KeyError(path)
    return found


def is_directory(found: Any) -> bool:
    return isinstance(found, (dict, list))


def listing(found: Any) -> str:
    """Return a directory's entries, a line each; directories end in a slash."""
    entries = found.items() if isinstance(found, dict) else enumerate(found)
    return "".join(f"{name}{'/' if is_directory(item) else ''}\n" for name, item in entries)


def as_json(found: Any, place: str = "") -> Any:
    """Return the form of `alt=json`: the platform's own names in camel case."""
    if isinstance(found, list):
        return [as_json(item) for item in found]
    if not isinstance(found, dict):
        return found
    own = place in _BELOW
    return {
        name if own else re.sub(r"-(\w)", lambda each: each[1].upper(), name): item if own else as_json(item, name)
        for name, item in found.items()
    }


def as_text(found: Any, below: str = "") -> str:
    """Return the form of `recursive=true&alt=text`: path and value, a line each."""
    if not is_directory(found):
        return f"{below} {found}\n"
    entries = found.items() if isinstance(found, dict) else enumerate(found)
    return "".join(as_text(item, f"{below}/{name}" if below else str(name)) for name, item in entries)
