"""Processes of the control plane: started in order, watched, ended together; their commands and files.

The API server calls webhooks at a Service's cluster address and kubelets at their node's. By an
EgressSelectorConfiguration, it asks an HTTP CONNECT proxy for both, which leads every address to loopback, so that a
Service, a webhook configuration and a node's addresses can be those of the real thing. Source:
https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/
"""

import contextlib
import ctypes
import ipaddress
import os
import secrets
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import yaml

from ..google import UNIQUE_ID, scope_token
from ..loopback import free_ports
from . import bootstrap
from .certificates import Certificates, make
from .client import Cluster, Refusal

Services = Mapping[tuple[str, str], int]
"""Ports on loopback that stand for the pods behind a Service, by namespace and name."""

CIDR = "10.96.0.0/16"
"""Network of the cluster addresses of Services."""

SOCKET = "tunnel.sock"
_CONNECT_S = 5
_CHUNK = 1 << 16


class Tunnel(socketserver.ThreadingUnixStreamServer):
    """Proxy at the socket SOCKET in a folder, in a thread of its own. A node's address means that port on loopback. A
    socket, because the API server accepts a port only with TLS."""

    daemon_threads = True

    def __init__(self, folder: Path, services: Services) -> None:
        with contextlib.chdir(folder):  # the path of a socket is limited to some 100 characters
            super().__init__(SOCKET, _Connection)
        self.cluster: Cluster | None = None
        self._services = services
        self._ports: dict[str, int] = {}
        threading.Thread(target=self.serve_forever, args=(0.2,), daemon=True).start()

    def port_of(self, host: str, port: int) -> int | None:
        """Return the port on loopback for an address in the cluster, or None where nothing is behind it."""
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


USER = "sandbox"


@dataclass(frozen=True)
class Layout:
    """Layout of a control plane: its files, its ports on 127.0.0.1 (see PORTS), its keys, and the token of its user."""

    folder: Path
    ports: Mapping[str, int]
    certificates: Certificates
    token: str

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.ports['api']}"

    @property
    def url(self) -> str:
        return f"https://{self.endpoint}"

    def kubeconfig(self) -> str:
        cluster = {"server": self.url, "certificate-authority-data": bootstrap.ca_bundle(self.certificates)}
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": USER,
                "clusters": [{"name": USER, "cluster": cluster}],
                "users": [{"name": USER, "user": {"token": self.token}}],
                "contexts": [{"name": USER, "context": {"cluster": USER, "user": USER}}],
            }
        )


HOOKS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "jobset": ("config.jobset.x-k8s.io/v1alpha1", {"internalCertManagement": {"enable": False}}),
    "kueue": (
        "config.kueue.x-k8s.io/v1beta1",
        {
            # Disabled, it needs keys in a fixed folder under /etc; enabled, it finds ours in its Secret.
            "internalCertManagement": {"enable": True},
            "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]},
            # A server of its own, which would need the rights and the files of a pod.
            "featureGates": {"VisibilityOnDemand": False},
            # As in the shipped configuration; the default is a third of that. Source:
            # https://github.com/kubernetes-sigs/kueue/blob/main/config/components/manager/controller_manager_config.yaml
            "clientConnection": {"qps": 50, "burst": 100},
        },
    ),
}


PORTS = ("api", *HOOKS, *(f"{name}-health" for name in HOOKS))


def configure(layout: Layout) -> None:
    """Write the files that the commands read."""
    ports = layout.ports
    controller = {
        "webhook": {"host": "127.0.0.1", "certDir": str(layout.certificates.folder)},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
    }
    files: dict[str, Mapping[str, Any]] = {
        "egress.yaml": {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [
                {
                    "name": "cluster",
                    "connection": {
                        "proxyProtocol": "HTTPConnect",
                        "transport": {"uds": {"udsName": SOCKET}},  # from the folder that it runs in
                    },
                }
            ],
        },
        "scheduler.yaml": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(layout.folder / "kubeconfig")},
            "leaderElection": {"leaderElect": False},
            "podMaxBackoffSeconds": 2,
        },
        **{
            f"{name}.yaml": {
                "apiVersion": version,
                "kind": "Configuration",
                **controller,
                "webhook": {**controller["webhook"], "port": ports[name]},
                "health": {"healthProbeBindAddress": f"127.0.0.1:{ports[f'{name}-health']}"},
                **more,
            }
            for name, (version, more) in HOOKS.items()
        },
    }
    for name, content in files.items():
        (layout.folder / name).write_text(yaml.safe_dump(content))
    (layout.folder / "kubeconfig").touch(0o600)
    (layout.folder / "kubeconfig").write_text(layout.kubeconfig())
    (layout.folder / "tokens.csv").touch(0o600)
    known = [f'{layout.token},{USER},{secrets.token_hex(4)},"system:masters"']
    known.append(f"{scope_token(layout.token, '')},{UNIQUE_ID},{UNIQUE_ID}")
    (layout.folder / "tokens.csv").write_text("".join(f"{line}\n" for line in known))


_ETCD = "unix://etcd:0"
"""Socket in the folder that the commands run in, which nobody else may enter: etcd trusts every client."""


def _etcd(layout: Layout) -> list[str]:
    client, peer = _ETCD, "unix://peer:0"
    return [
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _api(layout: Layout) -> list[str]:
    keys = layout.certificates
    return [
        f"--etcd-servers={_ETCD}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports['api']}",
        # Not loopback, and nobody calls it: the default is looked up in the machine's routes.
        "--advertise-address=192.0.2.1",
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={keys.folder / 'tls.crt'}",
        f"--tls-private-key-file={keys.folder / 'tls.key'}",
        f"--token-auth-file={layout.folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys.accounts}",
        f"--service-account-signing-key-file={keys.accounts}",
        f"--service-cluster-ip-range={CIDR}",
        f"--egress-selector-config-file={layout.folder / 'egress.yaml'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={keys.folder / 'tls.crt'}",
        f"--kubelet-client-key={keys.folder / 'tls.key'}",
        "--allow-privileged=true",
        # GKE adds a pod's tolerations for the resources that it requests.
        # https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus
        "--enable-admission-plugins=ExtendedResourceToleration",
        # An exec reaches our kubelet as the client sent it, by WebSocket, and not as SPDY.
        "--feature-gates=TranslateStreamCloseWebsocketRequests=false",
        "--profiling=false",
    ]


COMMANDS: Mapping[str, Callable[[Layout], list[str]]] = {
    "etcd": _etcd,
    "kube-apiserver": _api,
    "kube-controller-manager": lambda layout: [
        f"--kubeconfig={layout.folder / 'kubeconfig'}",
        f"--root-ca-file={layout.certificates.ca}",
        f"--service-account-private-key-file={layout.certificates.accounts}",
        "--leader-elect=false",
        "--secure-port=0",
        # Nobody renews the leases of the sandbox's nodes: a node is well until Google takes it away.
        "--node-monitor-grace-period=8760h",
    ],
    "kube-scheduler": lambda layout: [f"--config={layout.folder / 'scheduler.yaml'}", "--secure-port=0"],
    **{name: lambda layout, name=name: [f"--config={layout.folder / name}.yaml"] for name in HOOKS},
}


_START_S = 120
_AGAIN_S = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


class ProcessFailure(Exception):
    """Process that ended, or was not ready in time."""


@dataclass
class ControlPlane:
    """Control plane in a folder, which begins empty: its state is that of one run. `binaries`: a folder with `bin` and
    `manifests`; `token`: the API server's token of a system:masters user."""

    folder: Path
    binaries: Path
    token: str
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict[str, subprocess.Popen[bytes]])
    _ended_at: dict[str, float] = field(default_factory=dict[str, float])
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, mode=0o700)
        (self.folder / "logs").mkdir()
        services = {bootstrap.service(name): name for name in HOOKS}
        keys = make(self.folder / bootstrap.KEYS, tuple(f"{name}.{space}.svc" for space, name in services))
        (self.folder / "ca.crt").write_bytes(keys.ca.read_bytes())
        (self.folder / "manifests").symlink_to(self.binaries / "manifests")
        ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        self.layout = Layout(self.folder, ports, keys, self.token)
        configure(self.layout)
        self.tunnel = Tunnel(self.folder, {place: ports[name] for place, name in services.items()})
        self.cluster = Cluster(self.layout.url, self.token, self.folder / "ca.crt")

    def start(self, stop: threading.Event | None = None) -> None:
        """Start everything, and return when the first Job could be created. Raises ProcessFailure for a process that
        failed, or once `stop` is set."""
        give_up = time.monotonic() + _START_S
        self._stop = stop or self._stop
        self._launch("etcd", "kube-apiserver")
        self._wait("kube-apiserver", give_up, lambda: self.cluster.text("/readyz"))
        self.tunnel.cluster = self.cluster
        self._launch("kube-controller-manager", "kube-scheduler")
        bootstrap.apply(self.cluster)
        self._launch(*HOOKS)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait("kube-controller-manager", give_up, lambda: self.cluster.get(account))
        http = requests.Session()
        http.trust_env = False  # no proxy before loopback
        for name in HOOKS:
            url = f"http://127.0.0.1:{self.layout.ports[f'{name}-health']}/readyz"
            self._wait(name, give_up, lambda url=url: http.get(url, timeout=5).raise_for_status())

    def watch(self) -> None:
        """Restart ended processes, as a kubelet would. Raises ProcessFailure for etcd and the API server, which it
        cannot replace."""
        for name, process in list(self._running.items()):
            if process.poll() is None:
                continue
            if name in ("etcd", "kube-apiserver"):
                raise self._ended(name)
            ended_at = self._ended_at.setdefault(name, time.monotonic())
            if time.monotonic() > ended_at + _AGAIN_S:
                del self._ended_at[name]
                self._launch(name)

    def stop(self) -> None:
        """End everything at once: no state outlives it."""
        self.tunnel.shutdown()
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait()

    def _launch(self, *names: str) -> None:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            "KUBECONFIG": str(self.folder / "kubeconfig"),
            # Unless set: half the garbage before it is collected, because memory counts more here than time.
            "GOGC": os.environ.get("GOGC", "50"),
        }
        for name in names:
            with (self.folder / "logs" / f"{name}.log").open("a") as log:
                self._running[name] = subprocess.Popen(
                    [str(self.binaries / "bin" / name), *COMMANDS[name](self.layout)],
                    cwd=self.folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=_with_us,
                )

    def _wait(self, name: str, give_up: float, ask: Callable[[], object]) -> None:
        while True:
            try:
                ask()
            except (Refusal, requests.RequestException) as error:
                self.watch()
                if time.monotonic() > give_up or self._stop.wait(0.05):
                    raise self._ended(name) from error
            else:
                return

    def _ended(self, name: str) -> ProcessFailure:
        log = self.folder / "logs" / f"{name}.log"
        code = self._running[name].poll()
        how = "was not ready in time" if code is None else f"ended with {code}"
        last = " | ".join(log.read_text(errors="replace").strip().splitlines()[-2:])
        return ProcessFailure(f"{name} {how}: {last} (see {log})")


def _with_us() -> None:
    """End the child with this process, in whatever way it ends. Elsewhere than on Linux the next start ends what is
    left."""
    if _LIBC:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
