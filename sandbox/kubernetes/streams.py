"""HTTPS server of the kubelets, which the API server calls for logs and for commands to run in a pod.

Logs are read here, from what container.py stores. Commands are run here for a client whose WebSocket the API server
passes through, by a wrapper that gives them the container's folder and environment; its streams are channels of one
connection. The API server passes it through unchanged where the client speaks v4.channel.k8s.io, and v5 as well with
the feature gate TranslateStreamCloseWebsocketRequests off; with the gate on, it would ask for SPDY.
https://github.com/kubernetes/kubernetes/blob/v1.34.4/staging/src/k8s.io/apimachinery/pkg/util/remotecommand/constants.go
"""

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import ssl
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from ..runner_process import PROJECT
from ..websocket import BINARY, END, PING, PONG, end, frames, handshake, send
from .container import Container
from .kubelet import Kubelet

_POLL_S = 0.1
_ENTER = """
import json, os, sys
sys.path[:0] = [sys.argv[2]]
from jobs.backends.local_programs.runner import environment
spec = json.load(open(sys.argv[1]))
os.chdir(spec["workdir"])
made = environment(spec["env"])
os.environ["PATH"] = made["PATH"]
try:
    os.execvpe(sys.argv[3], sys.argv[3:], made)
except OSError as error:
    sys.exit(f'exec failed: unable to start container process: exec: "{sys.argv[3]}": {error.strerror}')
"""


class StreamError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Streams(ThreadingHTTPServer):
    """Server on a port of 127.0.0.1, in a thread of its own. `keys`: a folder with tls.crt, tls.key and the authority
    of clients, ca.crt."""

    daemon_threads = True

    def __init__(self, kubelet: Kubelet, keys: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kubelet = kubelet
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(keys / "tls.crt", keys / "tls.key")
        context.load_verify_locations(keys / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED  # only the API server's: any other client could run commands
        # The handshake is left to the connection's own thread.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, args=(0.2,), daemon=True).start()

    @property
    def port(self) -> int:
        return self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    server: Streams  # pyright: ignore[reportIncompatibleVariableOverride]
    connection: ssl.SSLSocket
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.close_connection = True
        parts = urlsplit(self.path)
        kind, *place = parts.path.strip("/").split("/")
        try:
            match kind, place:
                case "containerLogs", [namespace, pod, container]:
                    self._logs(namespace, pod, container, {k: v[0] for k, v in parse_qs(parts.query).items()})
                case "exec", [namespace, pod, *_, container]:
                    self._exec(namespace, pod, container, parts.query)
                case _:
                    raise StreamError(HTTPStatus.NOT_IMPLEMENTED, f"the sandbox's kubelet does not serve {kind}")
        except StreamError as refusal:
            body = str(refusal).encode()
            self.send_response(refusal.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def _logs(self, namespace: str, pod: str, container: str, query: dict[str, str]) -> None:
        run = self._container(namespace, pod, container, query.get("previous") == "true")
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        left = int(query.get("limitBytes") or sys.maxsize)
        for line in lines(run, query) if run else ():
            part = line[:left]
            left -= len(part)
            if part:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            if not left:
                break
        self.wfile.write(b"0\r\n\r\n")

    def _container(self, namespace: str, pod: str, container: str, previous: bool = False) -> Container | None:
        """Return the run of a container for its log, or None for a simulated one, which prints nothing."""
        found = self.server.kubelet.find(namespace, pod)
        if found is None:
            raise StreamError(HTTPStatus.NOT_FOUND, f'pod "{pod}" not found')
        runs = found.attempts.get(container, [])
        if previous:
            if len(runs) < 2:
                raise StreamError(
                    HTTPStatus.BAD_REQUEST, f'previous terminated container "{container}" in pod "{pod}" not found'
                )
            return runs[-2]
        if runs:
            return runs[-1]
        statuses = [*found.sent.get("containerStatuses", []), *found.sent.get("initContainerStatuses", [])]
        waiting = next((each["state"].get("waiting") for each in statuses if each["name"] == container), None)
        if waiting or not statuses:
            why = (waiting or {}).get("reason", "ContainerCreating")
            if why in ("ErrImagePull", "ImagePullBackOff"):
                why = "trying and failing to pull image" if why == "ErrImagePull" else "image can't be pulled"
            said = f'container "{container}" in pod "{pod}" is waiting to start: {why}'
            raise StreamError(HTTPStatus.BAD_REQUEST, said)
        return None

    def _exec(self, namespace: str, pod: str, container: str, query: str) -> None:
        run = self._container(namespace, pod, container)
        if run is None or run.over:
            raise StreamError(
                HTTPStatus.BAD_REQUEST, f'cannot exec in "{container}" of "{pod}": no process of it runs here'
            )
        pairs = parse_qsl(query, keep_blank_values=True)
        words = [value for name, value in pairs if name == "command"]
        wrapped = [sys.executable, "-c", _ENTER, str(run.folder / "spec.json"), str(PROJECT), *words]
        opening = handshake(self.headers, PROTOCOLS)
        if opening is None:
            raise StreamError(HTTPStatus.NOT_IMPLEMENTED, "exec is by WebSocket here")
        self.connection.sendall(opening.encode())
        asked = {name for name, value in pairs if value in ("1", "true")}
        join(self.connection, wrapped, "stdin" in asked or "input" in asked, "tty" in asked)


def lines(run: Container, query: dict[str, str]) -> Iterator[bytes]:
    """Yield the lines of a log as the query selects them; with `follow` until the container has ended."""
    since, times = _since(query), query.get("timestamps") == "true"
    with run.log.open("rb") as log:
        if query.get("tailLines"):
            count = int(query["tailLines"])
            kept = log.read().splitlines(keepends=True)
            kept = kept[len(kept) - count :] if count < len(kept) else kept
        else:
            kept = []
        while True:
            over = run.over  # called before reading, so that the last output is read
            for line in kept or log:
                moment, _, text = line.partition(b" ")
                if moment.decode() >= since:
                    yield line if times else text
            if kept:
                kept = []
                continue
            if over or query.get("follow") != "true":
                return
            time.sleep(_POLL_S)


def _since(query: dict[str, str]) -> str:
    """Return the first wanted moment, in the form of a log's times; "" for all."""
    if query.get("sinceTime"):
        moment, _, rest = query["sinceTime"].removesuffix("Z").partition(".")
        return f"{moment}.{rest:0<9}Z"
    if query.get("sinceSeconds"):
        return f"{datetime.now(UTC) - timedelta(seconds=int(query['sinceSeconds'])):%Y-%m-%dT%H:%M:%S.%f}000Z"
    return ""


PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_PIPE_CHUNK = 1 << 15


def join(connection: ssl.SSLSocket, command: Sequence[str], stdin: bool, tty: bool) -> None:
    """Run a command over an open connection until it ends. A client that goes away ends it."""
    terminal, inner = pty.openpty() if tty else (-1, -1)
    give = inner if tty else subprocess.PIPE
    process = subprocess.Popen(
        command,
        stdin=give if tty or stdin else subprocess.DEVNULL,
        stdout=give,
        stderr=give,
        start_new_session=True,
        preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if tty else None,
    )
    if tty:
        os.close(inner)
        outputs, pipe = {terminal: _STDOUT}, terminal
    else:
        assert process.stdout and process.stderr
        outputs = {process.stdout.fileno(): _STDOUT, process.stderr.fileno(): _STDERR}
        pipe = process.stdin.fileno() if process.stdin else -1
    messages = frames(connection)
    try:
        while outputs:
            ready: list[Any] = (
                [connection] if connection.pending() else select.select([connection, *outputs], [], [])[0]
            )
            for each in ready:
                if each is connection:
                    if not _heard(next(messages), connection, process, pipe):
                        return
                elif data := _read(each):
                    send(connection, BINARY, bytes([outputs[each]]) + data)
                else:
                    del outputs[each]
        send(connection, BINARY, bytes([_ERROR]) + _status(process.wait()))
        end(connection, 1000)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()
        if tty:
            os.close(terminal)


def _heard(frame: tuple[int, bytes], connection: ssl.SSLSocket, process: Any, pipe: int) -> bool:
    """Act on a frame, and return whether the client goes on."""
    kind, data = frame
    if kind == END:
        return False
    if kind == PING:
        send(connection, PONG, data)
    elif kind == BINARY and data:
        channel, rest = data[0], data[1:]
        with contextlib.suppress(OSError):  # the command reads no more
            if channel == _STDIN and pipe >= 0 and rest:
                os.write(pipe, rest)
            elif channel == _CLOSE and rest[:1] == bytes([_STDIN]) and process.stdin and not process.stdin.closed:
                process.stdin.close()
            elif channel == _RESIZE and pipe >= 0:
                size = json.loads(rest)
                fcntl.ioctl(pipe, termios.TIOCSWINSZ, struct.pack("HHHH", size["Height"], size["Width"], 0, 0))
    return True


def _read(stream: int) -> bytes:
    try:
        return os.read(stream, _PIPE_CHUNK)
    except OSError:  # a terminal without users
        return b""


def _status(code: int) -> bytes:
    if code == 0:
        return json.dumps({"metadata": {}, "status": "Success"}).encode()
    code = code if code > 0 else 128 - code
    said = f"command terminated with non-zero exit code: exit status {code}"
    causes = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
    body = {"metadata": {}, "status": "Failure", "message": said, "reason": "NonZeroExitCode", "details": causes}
    return json.dumps(body).encode()
