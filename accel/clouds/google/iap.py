"""Connection to a port of a machine without an external address, through Identity-Aware Proxy's relay for TCP.

A WebSocket carries the bytes. Each of its messages begins with a two-byte, big-endian tag:

1  connected: length (4 bytes), the session's id
4  data: length (4 bytes), at most 16,384 bytes
7  acknowledgement: total number of data bytes received (8 bytes)

Tags, sizes and query: googlecloudsdk/api_lib/compute/iap_tunnel_websocket_utils.py of gcloud. Close codes:
https://github.com/GoogleCloudPlatform/iap-desktop (SshRelayCloseCode). Interrupted sessions could be resumed but are
not, since operations here take seconds or can be repeated.
"""

import os
import socket
import struct
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

from accel.clouds.google.api import Google
from accel.clouds.google.rest import REACH, SIGN_IN, line
from accel.diagnostics.errors import CloudRefused, CloudSilent, JobsError, NoCredentials, NotFound

URL = "ACCEL_IAP_URL"
"""Environment variable with the URL of another relay than Google's."""
GOOGLES = "wss://tunnel.cloudproxy.app/v4"
PROTOCOL, ORIGIN = "relay.tunnel.cloudproxy.app", "bot:iap-tunneler"

CONNECTED, DATA, ACK = 1, 4, 7
CHUNK = 16_384
ACK_EVERY = 2 * CHUNK
DEAD_S = 60
"""Time without acknowledgement of sent data after which a connection is dead."""

RANGE = "35.235.240.0/20"
"""Source addresses of the relay. Source: https://docs.cloud.google.com/iap/docs/using-tcp-forwarding"""
ROLE = "roles/iap.tunnelResourceAccessor"
FIREWALL = f"the machine's network must let {RANGE} in on port 22, and the machine must have started"
GONE = "it may have gone, or not be there yet; `accel-jobs get` shows the job's state"
ACCESS = f"{ROLE} on the project, or on the machine, lets you through"

REFUSALS: Mapping[int, tuple[type[JobsError], str]] = {
    4003: (CloudSilent, FIREWALL),
    4004: (NoCredentials, SIGN_IN),
    4033: (CloudRefused, ACCESS),
    4047: (NotFound, GONE),
}
"""Error and hint by close code."""
STATUSES: Mapping[int, tuple[type[JobsError], str]] = {401: (NoCredentials, SIGN_IN), 403: (CloudRefused, ACCESS)}
"""Error and hint by HTTP status, if the WebSocket itself is refused."""


def connect(google: Google, project: str, zone: str, instance: str, port: int = 22) -> "Relay":
    """Connect to the first interface. Raise NotFound, CloudRefused, NoCredentials, CloudSilent with what to check."""
    doing = f"{instance} in {zone}: IAP"
    query = {"project": project, "zone": zone, "instance": instance, "interface": "nic0", "port": port}
    url = f"{(os.environ.get(URL) or GOOGLES).rstrip('/')}/connect?{urlencode(query | {'newWebsocket': True})}"
    relay = Relay(_opened(google, url, doing), doing)
    relay.begin(google.timing.read_s)
    return relay


def _opened(google: Google, url: str, doing: str) -> Any:
    """Try a second time only if the first was refused for its token."""
    websocket = import_module("websocket")
    linux = hasattr(socket, "TCP_USER_TIMEOUT")
    options = [(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_S * 1000)] if linux else []
    signed: Mapping[str, str] | None = None
    for again in (False, True):
        signed = google.headers(signed)
        try:
            return websocket.create_connection(
                url,
                header=[f"Authorization: {signed['Authorization']}"],
                origin=ORIGIN,
                subprotocols=[PROTOCOL],
                sockopt=options,
                timeout=google.timing.connect_s,
            )
        except websocket.WebSocketBadStatusException as error:
            if error.status_code == 401 and not again:
                continue
            kind, hint = STATUSES.get(int(error.status_code or 0), (CloudSilent, REACH))
            raise kind(f"{doing}: HTTP {error.status_code}", hint) from error
        except (websocket.WebSocketException, OSError) as error:
            raise CloudSilent(f"{doing}: {line(error)}", REACH) from error
    raise AssertionError


class Relay:
    """A socket, as far as paramiko needs one. One thread receives; any number may send."""

    def __init__(self, websocket: Any, doing: str) -> None:
        self._websocket, self._doing = websocket, doing
        self._came = threading.Condition()
        self._data = bytearray()
        self._timeout: float | None = None
        self._received = self._acknowledged = 0
        self._over = False
        self._closed = False  # paramiko reads it
        self.why: JobsError | None = None
        """None if both sides closed the connection."""

    def begin(self, timeout_s: float) -> None:
        """Wait until the machine has answered, then start receiving."""
        websocket = import_module("websocket")
        self._websocket.settimeout(timeout_s)
        try:
            while not self._taken():
                pass
        except websocket.WebSocketTimeoutException as error:
            self.why = CloudSilent(f"{self._doing}: nothing was heard for {timeout_s:g} s", FIREWALL)
            self.why.__cause__ = error
        except (websocket.WebSocketException, OSError) as error:
            self.why = CloudSilent(f"{self._doing}: {line(error)}", REACH)
            self.why.__cause__ = error
        if self.why or self._over:
            self.close()
            raise self.why or CloudSilent(f"{self._doing}: the connection was closed at once", FIREWALL)
        self._websocket.settimeout(None)
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        websocket = import_module("websocket")
        try:
            while not self._over:
                self._taken()
        except (websocket.WebSocketException, OSError) as error:
            if not self._closed:
                self.why = CloudSilent(f"{self._doing}: the connection broke: {line(error)}", REACH)
        finally:
            with self._came:
                self._over = True
                self._came.notify_all()
            self._websocket.shutdown()

    def _taken(self) -> bool:
        """Process one message; return whether it was `connected`, or the end."""
        opcode, message = self._websocket.recv_data()
        if opcode == 8:
            code = int.from_bytes(message[:2], "big") if len(message) >= 2 else 1000
            told = line(message[2:].decode(errors="replace")) or "the connection was closed"
            if code != 1000:
                kind, hint = REFUSALS.get(code, (CloudSilent, REACH))
                self.why = kind(f"{self._doing}: {told} ({code})", hint)
            self._over = True
            return True
        tag = int.from_bytes(message[:2], "big")
        if tag == DATA:
            with self._came:
                self._data += message[6:]
                self._received += len(message) - 6
                self._came.notify_all()
            if self._received - self._acknowledged > ACK_EVERY:
                self._acknowledged = self._received
                self._websocket.send_binary(struct.pack(">HQ", ACK, self._received))
        return tag == CONNECTED

    def recv(self, count: int) -> bytes:
        """Return no bytes at the end. Raise TimeoutError."""
        until = None if self._timeout is None else time.monotonic() + self._timeout
        with self._came:
            while not self._data:
                if self._over:
                    return b""
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError
                self._came.wait(left)
            part = bytes(self._data[:count])
            del self._data[:count]
            return part

    def send(self, data: bytes) -> int:
        """Send the first bytes and return their number. Raises OSError if the connection is closed."""
        websocket = import_module("websocket")
        part = bytes(data[:CHUNK])
        try:
            self._websocket.send_binary(struct.pack(">HI", DATA, len(part)) + part)
        except websocket.WebSocketException as error:
            raise BrokenPipeError(str(error)) from error
        return len(part)

    def settimeout(self, timeout: float | None) -> None:
        self._timeout = timeout

    def close(self) -> None:
        """Close it even while others wait. Repeated calls do nothing."""
        if self._closed:
            return
        self._closed = True
        websocket = import_module("websocket")
        with suppress(websocket.WebSocketException, OSError):
            self._websocket.send_close()
        with suppress(websocket.WebSocketException, OSError):
            self._websocket.abort()  # wakes the thread that hears
