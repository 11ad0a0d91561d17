"""Commands in running pods, by the protocol of `kubectl exec`.

Each message begins with the number of its stream: 0 in, 1 out, 2 err, 3 the end, 4 the terminal's size, and in v5 255
closes a stream. Source: https://github.com/kubernetes/kubernetes/blob/v1.34.4/staging/src/k8s.io/apimachinery/pkg/util/
remotecommand/constants.go
"""

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, NotFound
from accel.json_values import object_at, objects_at

from ..base import JobRef, Places, Streams
from ..tasks import check_task
from . import labels, lookup
from .labels import Scope
from .lookup import GkeJob
from .machines import CHIPS, GPUS

CLOSING, PLAIN = "v5.channel.k8s.io", "v4.channel.k8s.io"
"""Protocols. Only the first can tell a command that its input has ended."""
IN, OUT, ERR, END, SIZE, CLOSE = 0, 1, 2, 3, 4, 255
CHUNK = 32_768
IDLE_S = 30
"""Seconds between two pings: proxies close a silent connection."""


def run(api: Api, scope: Scope, ref: JobRef, command: Sequence[str], task: int | None, streams: Streams) -> int:
    """Return the exit code. Raise NotFound, BadInput for a job without a running pod, or with several and no `task`."""
    pod = _pod(api, scope, ref, task)
    query = [
        ("container", labels.CONTAINER),
        *[("command", each) for each in command],
        ("stdin", "true" if streams.read else "false"),
        ("stdout", "true"),
        # A terminal has one stream for both.
        ("stderr", "false" if streams.size else "true"),
        ("tty", "true" if streams.size else "false"),
    ]
    protocols = [CLOSING, PLAIN] if streams.read else [PLAIN]
    socket = api.socket(f"{scope.core('pods')}/{pod}/exec", query, protocols)
    try:
        return _Talk(socket, streams, f"exec in {pod}").run()
    finally:
        socket.close()


def places(api: Api, scope: Scope, ref: JobRef) -> Places:
    job = GkeJob(lookup.body(api, scope, ref.id))
    running = {lookup.index(pod) if job.several else 0 for pod in _running(api, scope, ref, "task", None)}
    asked = object_at(job.container, "resources", "limits")
    return Places(
        word=job.several,
        running=tuple(sorted(running)),
        gpus=int(asked.get(GPUS) or 0),
        chips=int(asked.get(CHIPS) or 0),
    )


def _pod(api: Api, scope: Scope, ref: JobRef, task: int | None) -> str:
    job = GkeJob(lookup.body(api, scope, ref.id))
    word = job.several or "task"
    check_task(ref, task, job.several, job.count)
    running = _running(api, scope, ref, word, task)
    if len(running) > 1 and job.several:
        indexes = sorted({lookup.index(pod) for pod in running})
        shown = ", ".join(map(str, indexes[:6])) + (", ..." if len(indexes) > 6 else "")
        raise BadInput(f"{ref}: --{word} is missing; {word}s that run: {shown}")
    return str(object_at(running[-1], "metadata").get("name"))


def _running(api: Api, scope: Scope, ref: JobRef, word: str, task: int | None) -> list[dict[str, Any]]:
    selector = f"{labels.OBJECT}={ref.id}" + (f",{labels.INDEX}={task}" if task is not None else "")
    listed = api.first(scope.core("pods"), 500, labelSelector=selector, fieldSelector="status.phase=Running")
    running = [pod for pod in listed if not object_at(pod, "metadata").get("deletionTimestamp")]
    if not running:
        what = f"{word} {task} of {ref}" if task is not None else str(ref)
        raise BadInput(f"{what}: no pod of it runs now", f"`accel-jobs get {ref}` shows its state")
    return running


class _Talk:
    """Exec connection. The caller's thread writes output as it arrives, another thread sends the input."""

    def __init__(self, socket: Any, streams: Streams, doing: str) -> None:
        self._socket = socket
        self._streams = streams
        self._doing = doing
        self._closable = socket.getsubprotocol() == CLOSING

    def run(self) -> int:
        import websocket

        self._socket.settimeout(IDLE_S)
        if self._streams.size:
            self._send(SIZE, _terminal(self._streams.size))
        if self._streams.read:
            threading.Thread(target=self._feed, args=(self._streams.read,), daemon=True).start()
        while True:
            try:
                message = self._socket.recv()
            except websocket.WebSocketTimeoutException:
                self._socket.ping()
                continue
            except (websocket.WebSocketException, OSError) as error:
                raise CloudSilent(f"{self._doing}: the connection broke: {error}") from error
            data = message.encode() if isinstance(message, str) else message
            if not data:
                if not self._socket.connected:
                    raise CloudSilent(f"{self._doing}: the connection was closed before the command's end was told")
                continue
            if data[0] == END:
                return _exit_code(self._doing, data[1:])
            if data[0] in (OUT, ERR):
                self._streams.write(data[0] == ERR, data[1:])

    def _feed(self, read: Callable[[int], bytes]) -> None:
        import websocket

        try:
            while chunk := read(CHUNK):
                self._send(IN, chunk)
            if self._closable:
                self._send(CLOSE, bytes([IN]))
        except (websocket.WebSocketException, OSError):
            return  # the command has ended, which the other thread reports

    def _send(self, stream: int, data: bytes) -> None:
        self._socket.send_binary(bytes([stream]) + data)


def _terminal(size: tuple[int, int]) -> bytes:
    return json.dumps({"Width": size[0], "Height": size[1]}).encode()


def _exit_code(doing: str, data: bytes) -> int:
    try:
        told: Any = json.loads(data)
    except ValueError:
        raise CloudSilent(f"{doing}: its end cannot be understood") from None
    if told.get("status") == "Success":
        return 0
    for cause in objects_at(object_at(told, "details"), "causes"):
        if cause.get("reason") == "ExitCode" and str(cause.get("message")).isdigit():
            return int(cause["message"])
    message = " ".join(str(told.get("message") or told.get("reason")).split())[:500]
    if told.get("reason") == "NotFound":
        raise NotFound(f"{doing}: {message}")
    raise CloudRefused(f"{doing}: {message}")
