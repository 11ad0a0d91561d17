"""`exec` over a WebSocket: a command beside a container's own, its streams as channels of one connection.

The API server hands a connection through as it is where the client speaks v4.channel.k8s.io, and v5 as well with the
feature gate TranslateStreamCloseWebsocketRequests off; without it, it would ask for SPDY.
https://github.com/kubernetes/kubernetes/blob/v1.34.4/staging/src/k8s.io/apimachinery/pkg/util/remotecommand/constants.go
"""

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import pty
import select
import signal
import ssl
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_BINARY, _END, _PING, _PONG = 2, 8, 9, 10
_CHUNK = 1 << 15


def handshake(headers: Mapping[str, str]) -> str | None:
    """The answer that opens the connection; None: no protocol that is known here is offered."""
    offered = [each.strip() for each in headers.get("Sec-WebSocket-Protocol", "").split(",")]
    protocol = next((each for each in PROTOCOLS if each in offered), None)
    if protocol is None:
        return None
    digest = hashlib.sha1((headers["Sec-WebSocket-Key"] + _GUID).encode(), usedforsecurity=False).digest()
    lines = ("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade")
    accept = f"Sec-WebSocket-Accept: {base64.b64encode(digest).decode()}"
    return "\r\n".join((*lines, accept, f"Sec-WebSocket-Protocol: {protocol}", "", ""))


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
    frames = _frames(connection)
    try:
        while outputs:
            ready: list[Any] = (
                [connection] if connection.pending() else select.select([connection, *outputs], [], [])[0]
            )
            for each in ready:
                if each is connection:
                    if not _heard(next(frames), connection, process, pipe):
                        return
                elif data := _read(each):
                    _send(connection, _BINARY, bytes([outputs[each]]) + data)
                else:
                    del outputs[each]
        _send(connection, _BINARY, bytes([_ERROR]) + _status(process.wait()))
        _send(connection, _END, struct.pack(">H", 1000))
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
    if kind == _END:
        return False
    if kind == _PING:
        _send(connection, _PONG, data)
    elif kind == _BINARY and data:
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


def _send(connection: ssl.SSLSocket, kind: int, data: bytes) -> None:
    short = len(data) if len(data) < 126 else 126 if len(data) < 1 << 16 else 127
    long = b"" if short < 126 else struct.pack(">H" if short == 126 else ">Q", len(data))
    connection.sendall(bytes([0x80 | kind, short]) + long + data)


def _frames(connection: ssl.SSLSocket) -> Iterator[tuple[int, bytes]]:
    """Each message of the client: its kind and its data, unmasked; at the end one that says so."""
    whole = b""
    try:
        while True:
            first, second = _exactly(connection, 2)
            length = second & 127
            if length >= 126:
                length = int.from_bytes(_exactly(connection, 2 if length == 126 else 8), "big")
            mask = _exactly(connection, 4) if second & 128 else bytes(4)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(_exactly(connection, length)))
            kind = first & 15
            if kind >= _END:
                yield kind, data
                continue
            whole += data
            if first & 128:
                yield _BINARY, whole
                whole = b""
    except (ConnectionError, ssl.SSLError):
        while True:
            yield _END, b""


def _exactly(connection: ssl.SSLSocket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionResetError
        data += part
    return data
