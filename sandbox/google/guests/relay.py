"""Relay of Identity-Aware Proxy for TCP: a WebSocket that leads to a port of a machine.

Requests come as URL/v4/connect?project=&zone=&instance=&interface=nic0&port=22, with the bearer token. Its messages and
its close codes are the SSH Relay protocol, version 4, as Google's clients implement it:
https://github.com/GoogleCloudPlatform/iap-desktop (SshRelayFormat, SshRelayCloseCode), and gcloud's
iap_tunnel_websocket_utils. A token that is not accepted is HTTP 401 here; Google's answer is not known.
"""

import contextlib
import secrets
import socket
import struct
import threading
from collections.abc import Mapping
from typing import Any

from ...websocket import BINARY, END, PING, PONG, end, frames, handshake, send
from .. import PROJECT

PROTOCOL = "relay.tunnel.cloudproxy.app"
PATH = "/v4/"
ORIGIN = "bot:iap-tunneler"
"""Origin that gcloud sends."""
SSH = 22
_CONNECTED, _DATA, _ACK = 1, 4, 7  # CONNECT_SUCCESS_SID, DATA, ACK
_DATA_BYTES = 16384
_ACK_BYTES = 2 * _DATA_BYTES
# Texts: https://github.com/terraform-google-modules/terraform-google-bastion-host/issues/58 (4003),
# https://github.com/google-github-actions/ssh-compute/issues/44 (4033),
# https://github.com/hashicorp/packer-plugin-googlecompute/issues/195 (4047); that of 4001 is ours.
NO_SESSION = (4001, "unknown session")
NO_BACKEND = (4003, "failed to connect to backend")
BAD_ACK, BAD_TAG = (4005, ""), (4008, "")
NOT_AUTHORIZED = (4033, "not authorized")
NO_INSTANCE = (4047, "Failed to lookup instance")


def serve(guests: Any, handler: Any, path: str, query: Mapping[str, str], allowed: bool) -> None:
    """Answer a request for the relay on the connection of an HTTP handler, until either side has ended it."""
    handler.close_connection = True
    connection: socket.socket = handler.connection
    opening = handshake(handler.headers, [PROTOCOL])
    if opening is None or not allowed:
        handler.send_response(400 if allowed else 401)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    with contextlib.suppress(OSError):  # a client that goes away
        connection.sendall(opening.encode())
        refused = _relay(guests, connection, query) if path == f"{PATH}connect" else NO_SESSION
        end(connection, *refused)


def _relay(guests: Any, connection: socket.socket, query: Mapping[str, str]) -> tuple[int, str]:
    """Connect and forward; return code and reason of the end."""
    project, zone, name = (query.get(each, "") for each in ("project", "zone", "instance"))
    if project != PROJECT:
        return NOT_AUTHORIZED
    ssh = guests.ssh(project, zone, name)
    if not ssh:
        return NO_INSTANCE
    port = int(query.get("port", SSH))
    try:
        backend = socket.create_connection(("127.0.0.1", ssh if port == SSH else port), 10)
    except OSError:
        return NO_BACKEND
    with backend:
        backend.settimeout(None)
        backend.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = secrets.token_urlsafe(16).encode()
        send(connection, BINARY, struct.pack(">HI", _CONNECTED, len(session)) + session)
        sending, sent = threading.Lock(), [0]
        back = threading.Thread(target=_back, args=(connection, backend, sending, sent), daemon=True)
        back.start()
        ended = _forth(connection, backend, sending, sent)
        with contextlib.suppress(OSError):
            backend.shutdown(socket.SHUT_RDWR)
        back.join()
    return ended


def _back(connection: socket.socket, backend: socket.socket, sending: threading.Lock, sent: list[int]) -> None:
    """Forward the machine's data to the client."""
    with contextlib.suppress(OSError):
        while data := backend.recv(_DATA_BYTES):
            with sending:
                sent[0] += len(data)
                send(connection, BINARY, struct.pack(">HI", _DATA, len(data)) + data)
    with contextlib.suppress(OSError), sending:
        end(connection, 1000)  # the client answers it, which ends _forth


def _forth(
    connection: socket.socket, backend: socket.socket, sending: threading.Lock, sent: list[int]
) -> tuple[int, str]:
    """Forward the client's data to the machine. A message may begin within the previous frame."""
    buffer, received, told = b"", 0, 0
    for kind, data in frames(connection):
        if kind == END:
            return 1000, ""
        if kind == PING:
            with sending:
                send(connection, PONG, data)
        buffer += data if kind == BINARY else b""
        while len(buffer) >= 10 or (len(buffer) >= 6 and buffer[:2] == struct.pack(">H", _DATA)):
            (tag,) = struct.unpack(">H", buffer[:2])
            if tag == _ACK:
                (acked,) = struct.unpack(">Q", buffer[2:10])
                if acked > sent[0]:
                    return BAD_ACK
                buffer = buffer[10:]
                continue
            if tag != _DATA:
                return BAD_TAG
            (length,) = struct.unpack(">I", buffer[2:6])
            if len(buffer) < 6 + length:
                break
            part, buffer = buffer[6 : 6 + length], buffer[6 + length :]
            try:
                backend.sendall(part)
            except OSError:
                return 4009, ""  # DESTINATION_WRITE_FAILED
            received += length
            if received - told > _ACK_BYTES:
                told = received
                with sending:
                    send(connection, BINARY, struct.pack(">HQ", _ACK, received))
    return 1000, ""
