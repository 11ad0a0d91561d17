"""Server's side of a WebSocket (RFC 6455) on a connection that an HTTP server has accepted."""

import base64
import hashlib
import socket
import ssl
import struct
from collections.abc import Iterator, Mapping, Sequence

BINARY, END, PING, PONG = 2, 8, 9, 10
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def handshake(headers: Mapping[str, str], protocols: Sequence[str]) -> str | None:
    """Return the answer that opens the connection, or None if the client offers none of the protocols. The first ones
    are preferred."""
    offered = [each.strip() for each in headers.get("Sec-WebSocket-Protocol", "").split(",")]
    protocol = next((each for each in protocols if each in offered), None)
    if protocol is None or "Sec-WebSocket-Key" not in headers:
        return None
    digest = hashlib.sha1((headers["Sec-WebSocket-Key"] + _GUID).encode(), usedforsecurity=False).digest()
    lines = ("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade")
    accept = f"Sec-WebSocket-Accept: {base64.b64encode(digest).decode()}"
    return "\r\n".join((*lines, accept, f"Sec-WebSocket-Protocol: {protocol}", "", ""))


def send(connection: socket.socket, kind: int, data: bytes) -> None:
    """Send one message as one frame."""
    short = len(data) if len(data) < 126 else 126 if len(data) < 1 << 16 else 127
    long = b"" if short < 126 else struct.pack(">H" if short == 126 else ">Q", len(data))
    connection.sendall(bytes([0x80 | kind, short]) + long + data)


def end(connection: socket.socket, code: int, reason: str = "") -> None:
    send(connection, END, struct.pack(">H", code) + reason.encode())


def frames(connection: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Yield kind and unmasked data of each message. Yields END repeatedly once the connection is closed."""
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
            if kind >= END:
                yield kind, data
                continue
            whole += data
            if first & 128:
                yield BINARY, whole
                whole = b""
    except (ConnectionError, ssl.SSLError):
        while True:
            yield END, b""


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionResetError
        data += part
    return data
