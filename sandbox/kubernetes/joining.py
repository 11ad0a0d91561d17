"""`exec` over a WebSocket: a command beside a container's own, its streams as channels of one connection.

The API server hands a connection through as it is where the client speaks v4.channel.k8s.io, and v5 as well with the
feature gate TranslateStreamCloseWebsocketRequests off; without it, it would ask for SPDY.
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
import termios
from collections.abc import Sequence
from typing import Any

from ..websocket import BINARY, END, PING, PONG, end, frames, send

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_CHUNK = 1 << 15


def join(connection: ssl.SSLSocket, command: Sequence[str], stdin: bool, tty: bool) -> None:
    """Run a command over an open connection until it has ended, or the client has gone, which ends it."""
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
    """Do what a frame says; whether the client goes on."""
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
        return os.read(stream, _CHUNK)
    except OSError:  # a terminal whose last user has gone
        return b""


def _status(code: int) -> bytes:
    """How the command ended, as a Status object."""
    if code == 0:
        return json.dumps({"metadata": {}, "status": "Success"}).encode()
    code = code if code > 0 else 128 - code
    said = f"command terminated with non-zero exit code: exit status {code}"
    causes = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
    body = {"metadata": {}, "status": "Failure", "message": said, "reason": "NonZeroExitCode", "details": causes}
    return json.dumps(body).encode()
