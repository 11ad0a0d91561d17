"""The way from the API server into the cluster, which only exists here: a proxy that leads every address to loopback.

The API server calls webhooks at a Service's cluster address and kubelets at their node's. Told so by an
EgressSelectorConfiguration, it asks this HTTP CONNECT proxy for both, so that a Service, a webhook configuration and a
node's addresses can be those of the real thing. Source:
https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/
"""

import contextlib
import ipaddress
import socket
import socketserver
import threading
from collections.abc import Mapping
from pathlib import Path

from .client import Cluster, Refusal

Services = Mapping[tuple[str, str], int]
"""By namespace and name: the port on loopback that stands for the pods behind a Service."""

CIDR = "10.96.0.0/16"
"""Of cluster addresses of Services."""

SOCKET = "tunnel.sock"
_CONNECT_S = 5
_CHUNK = 1 << 16


class Tunnel(socketserver.ThreadingUnixStreamServer):
    """Serves at the socket SOCKET in a folder, from a thread of its own. A node's address means that port on loopback.

    A socket, because the API server takes a port only with TLS.
    """

    daemon_threads = True

    def __init__(self, folder: Path, services: Services) -> None:
        with contextlib.chdir(folder):  # the path of a socket may have some 100 characters only
            super().__init__(SOCKET, _Connection)
        self.cluster: Cluster | None = None
        self._services = services
        self._ports: dict[str, int] = {}
        threading.Thread(target=self.serve_forever, args=(0.2,), daemon=True).start()

    def port_of(self, host: str, port: int) -> int | None:
        """The port on loopback for an address in the cluster; None: nothing is behind it."""
        if ipaddress.ip_address(host) not in ipaddress.ip_network(CIDR):
            return port
        if self.cluster is None:
            return None
        try:
            for found in self.cluster.list("/api/v1/services", fieldSelector=f"spec.clusterIP={host}"):
                return self._services.get((found["metadata"]["namespace"], found["metadata"]["name"]))
        except Refusal:
            return None
        return None


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        verb, address, *_ = self.rfile.readline().decode("latin-1").split()
        while self.rfile.readline().strip():
            continue
        host, _, port = address.rpartition(":")
        tunnel = self.server
        assert isinstance(tunnel, Tunnel)
        target = tunnel.port_of(host.strip("[]"), int(port)) if verb == "CONNECT" else None
        try:
            if target is None:
                raise ConnectionRefusedError(address)
            other = socket.create_connection(("127.0.0.1", target), _CONNECT_S)
        except OSError:
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        with other:
            other.settimeout(None)
            other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_pump, args=(other, self.connection), daemon=True)
            back.start()
            _pump(self.connection, other)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
