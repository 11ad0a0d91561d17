"""A proxy in front of a cloud's stand-in that breaks chosen calls."""

import http.client
import json
import random
import select
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

Headers = list[tuple[str, str]]
BODIES = {
    "html": b"<html>sign in</html>",
    "other": b'{"foo": 1}',
    "list": b"[]",
    "null": b"null",
    "empty": b"",
}


@dataclass
class Chance:
    """A share of all calls that breaks in some way."""

    random: random.Random
    rate: float
    faults: list[str]


class Proxy:
    """Forwards, except for the calls that `faults` holds, by operation, each used up once.

    A fault is a name out of ANSWERS, or one without asking the cloud: `reset`, `close`, `hang`, `body:<name of
    BODIES>`; or one after it has answered: `accept+reset`, `+close`, `+hang`, `+truncate`, `+500`, `+drip`,
    `+body:<name>`.

    Calls are served one after the other, and one whose client has gone is lost: so on a slow machine too, a call
    that was given up is seen by the calls after it or never happens. A client's quiet period stands for that.
    """

    ANSWERS: ClassVar[dict[str, tuple[int, str]]] = {}
    """Faults that are answers, given without asking the cloud: the status and the cloud's own word for the error."""
    KEPT: ClassVar[tuple[str, ...]] = ("content-type",)
    """Headers of answers that are handed on."""

    def __init__(self, endpoint: str) -> None:
        self._to = endpoint.removeprefix("http://")
        self.faults: dict[str, list[str]] = defaultdict(list)
        self.calls: dict[str, int] = defaultdict(int)
        self.chance: Chance | None = None
        self.accepted = threading.Event()
        """Set when the cloud has answered a call that will be broken."""
        self.watch: Callable[[str, bool], None] = lambda operation, after: None
        """Told of each call before it is handed on, and after it was carried out, before its answer is."""
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.endpoint = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def operation(self, line: str, headers: dict[str, str]) -> str:
        """What a call does, in a word. `line` is its first line."""
        raise NotImplementedError

    def error(self, status: int, word: str) -> tuple[Headers, bytes]:
        """Headers and body of an error in the form of the cloud's."""
        raise NotImplementedError

    def heal(self) -> None:
        """No more faults."""
        self.faults.clear()
        self.chance = None

    def stop(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts, which a close alone does not
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._handle(connection)

    def _handle(self, connection: socket.socket) -> None:
        try:
            with connection:
                request = _request(connection)
                if request and not _gone(connection):
                    self._answer(connection, *request)
        except OSError:
            pass  # the client went away

    def _answer(self, connection: socket.socket, line: str, headers: dict[str, str], body: bytes) -> None:
        operation = self.operation(line, headers)
        self.calls[operation] += 1
        self.watch(operation, False)
        fault = self.faults[operation].pop(0) if self.faults[operation] else ""
        if self.chance and self.chance.random.random() < self.chance.rate:
            fault = self.chance.random.choice(self.chance.faults)
        if fault in self.ANSWERS:
            status, word = self.ANSWERS[fault]
            connection.sendall(_response(status, *(self.error(status, word) if word else ([], BODIES["html"]))))
            return
        if fault in ("reset", "close", "hang"):
            _break(connection, fault)
            return
        if fault.startswith("body:"):
            connection.sendall(_response(200, [], BODIES[fault.removeprefix("body:")]))
            return
        status, answered, text = self._forward(line, headers, body)
        self.watch(operation, True)
        how = fault.removeprefix("accept+")
        if fault:
            self.accepted.set()
        if how == "500":
            connection.sendall(_response(500, *self.error(500, "ServerException")))
        elif how.startswith("body:"):
            connection.sendall(_response(200, [], BODIES[how.removeprefix("body:")]))
        elif how == "truncate":
            connection.sendall(_response(status, answered, text)[: -len(text) // 2])
        elif how == "drip":
            for byte in _response(status, answered, text):
                connection.sendall(bytes([byte]))
                time.sleep(0.002)
        elif how:
            _break(connection, how)
        else:
            connection.sendall(_response(status, answered, text))

    def _forward(self, line: str, headers: dict[str, str], body: bytes) -> tuple[int, Headers, bytes]:
        method, path, _ = line.split(" ", 2)
        upstream = http.client.HTTPConnection(self._to, timeout=30)
        upstream.request(method, path, body, {**headers, "connection": "close"})
        response = upstream.getresponse()
        text = response.read()
        upstream.close()
        kept = [each for each in response.getheaders() if each[0].lower() in self.KEPT]
        return response.status, kept, text


class GoogleProxy(Proxy):
    """In front of the sandbox's Google. Operations are `<METHOD> <collection or verb>`; those of a bucket's objects
    are `claim`, `replace`, `read` and `list`."""

    ANSWERS: ClassVar[dict[str, tuple[int, str]]] = {
        "429": (429, "rateLimitExceeded"),
        "403 throttle": (403, "rateLimitExceeded"),
        "400": (400, "invalid"),
        "403": (403, "forbidden"),
        "401": (401, "authError"),
        "404": (404, "notFound"),
        "500": (500, "backendError"),
        "502": (502, ""),
        "503": (503, "backendError"),
        "504": (504, ""),
    }
    KEPT: ClassVar[tuple[str, ...]] = ("content-type", "date", "x-goog-generation")

    def operation(self, line: str, headers: dict[str, str]) -> str:
        method, target, _ = line.split(" ", 2)
        path, _, query = target.partition("?")
        if "/storage/v1/" in path:
            if method == "POST":
                return "claim" if "ifGenerationMatch=0" in query else "replace"
            return "read" if path.rpartition("/o/")[2] != path else "list"
        parts = path.strip("/").split("/")
        collections = ("queuedResources", "nodes", "instances", "instanceTemplates", "instanceGroupManagers")
        named = next((each for each in (*collections, "operations") if each in parts[-2:]), parts[-1])
        return f"{method} {named}"

    def _forward(self, line: str, headers: dict[str, str], body: bytes) -> tuple[int, Headers, bytes]:
        return super()._forward(line, {**headers, "host": self._to}, body)

    def error(self, status: int, word: str) -> tuple[Headers, bytes]:
        told = {"code": status, "message": word, "errors": [{"reason": word, "message": word, "domain": "global"}]}
        return [("content-type", "application/json")], json.dumps({"error": told}).encode()


def _request(connection: socket.socket) -> tuple[str, dict[str, str], bytes] | None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return None
        data += part
        if not data[:1].isupper():
            return None  # the begin of TLS
    head, _, body = data.partition(b"\r\n\r\n")
    line, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    return line, headers, body


def _gone(connection: socket.socket) -> bool:
    """Whether the client closed, which it does when it waits no longer."""
    poll = select.poll()  # which takes descriptors above 1023, too
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0)) and not connection.recv(1, socket.MSG_PEEK)


def _response(status: int, headers: Headers, body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _break(connection: socket.socket, how: str) -> None:
    if how == "hang":
        connection.settimeout(10)
        connection.recv(1)  # until the client gives up
    elif how == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
