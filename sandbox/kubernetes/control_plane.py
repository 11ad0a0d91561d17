"""The processes of the control plane: started in order, watched, ended together."""

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import requests

from . import bootstrap
from .certificates import make
from .client import Cluster, Refusal
from .commands import COMMANDS, HOOKS, PORTS, Layout, configure
from .tunnel import Tunnel

_START_S = 120
_PORTS = range(20_000, 32_000)  # below those that systems give to outgoing connections
_AGAIN_S = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


class Ended(Exception):
    """A process ended, or was not ready in time."""


@dataclass
class ControlPlane:
    """A control plane in a folder, which begins empty: its state is that of one run.

    `binaries`: a folder with `bin` and `manifests`; `token`: what the API server accepts as a system:masters user.
    """

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
        ports = dict(zip(PORTS, _free(len(PORTS)), strict=True))
        self.layout = Layout(self.folder, ports, keys, self.token)
        configure(self.layout)
        self.tunnel = Tunnel(self.folder, {place: ports[name] for place, name in services.items()})
        self.cluster = Cluster(self.layout.url, self.token, self.folder / "ca.crt")

    def start(self, stop: threading.Event | None = None) -> None:
        """Start everything, and return when the first Job could be made; Ended says what went wrong, or that `stop`
        was set."""
        give_up = time.monotonic() + _START_S
        self._stop = stop or self._stop
        self._launch("etcd", "kube-apiserver")
        self._wait("kube-apiserver", give_up, lambda: self.cluster.text("/readyz"))
        self.tunnel.cluster = self.cluster
        self._launch("kube-controller-manager", "kube-scheduler", "kwok")
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
        """Start again what has ended, as a kubelet would; without etcd or the API server it cannot go on: Ended."""
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
            "GOGC": "50",  # half the garbage before it is collected: memory counts more here than time
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

    def _ended(self, name: str) -> Ended:
        log = self.folder / "logs" / f"{name}.log"
        code = self._running[name].poll()
        how = "was not ready in time" if code is None else f"ended with {code}"
        last = " | ".join(log.read_text(errors="replace").strip().splitlines()[-2:])
        return Ended(f"{name} {how}: {last} (see {log})")


def _with_us() -> None:
    """In the child: its end with ours, however we end. Elsewhere than on Linux the next start ends what is left."""
    if _LIBC:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _free(count: int) -> list[int]:
    """Ports on loopback that nobody listens on, different from each other."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise Ended("no free ports on 127.0.0.1")
