"""`python -m sandbox.kubernetes --home DIR`: runs the control plane, writes DIR/kubernetes.json."""

import argparse
import json
import os
import shutil
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path

from .. import toolchain
from ..keys import key
from . import bootstrap
from .client import Cluster
from .control_plane import ControlPlane, Ended
from .tending import tend
from .wipe import remember

PLUGIN = "gke-gcloud-auth-plugin"
_PLUGIN = """#!/bin/sh
about='"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{}'
printf '{%s,"status":{"token":"%s"}}\\n' "$about" "$(cat "$(dirname -- "$0")/../key")"
"""
_LOOK_S = 0.2
_PODS_S = 3  # for the processes of pods to end


def serve(home: Path) -> None:
    """Serve until SIGTERM or SIGINT; raises Ended where the control plane ends, and nothing of it is left then."""
    told = home / "kubernetes.json"
    told.unlink(missing_ok=True)  # of one that was killed
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    folder = home / "kubernetes"
    shutil.rmtree(folder, ignore_errors=True)
    plane = ControlPlane(folder, toolchain.kubernetes(), key(home))
    nodes = threading.Thread(target=_nodes, args=(plane.cluster, home, stop), daemon=True)
    try:
        plane.start(stop)
        remember(plane.cluster)
        tend(plane.cluster, stop)
        layout = plane.layout
        about = {"pid": os.getpid(), "url": layout.url, "endpoint": layout.endpoint}
        secret = {"token": layout.token, "ca": bootstrap.ca_bundle(layout.certificates)}
        _lend(home, layout.kubeconfig())
        (home / "kubernetes.json.new").touch(0o600)
        (home / "kubernetes.json.new").write_text(json.dumps({**about, **secret}))
        (home / "kubernetes.json.new").replace(told)
        nodes.start()
        while not stop.wait(_LOOK_S):
            plane.watch()
    finally:
        told.unlink(missing_ok=True)
        stop.set()
        if nodes.ident:
            nodes.join(_PODS_S)
        plane.stop()


def _lend(home: Path, kubeconfig: str) -> None:
    """Write a kubeconfig for whoever has kubectl, and the plugin that a kubeconfig of GKE names."""
    (home / "kubeconfig").touch(0o600)
    (home / "kubeconfig").write_text(kubeconfig)
    (home / "bin").mkdir(exist_ok=True)
    (home / "bin" / PLUGIN).write_text(_PLUGIN)
    (home / "bin" / PLUGIN).chmod(0o755)


def _nodes(cluster: Cluster, home: Path, stop: threading.Event) -> None:
    """Make the nodes that Google's side asks for, from when it is there; without them nothing runs, so all ends."""
    try:
        while not (home / "google.json").exists():
            if stop.wait(_LOOK_S):
                return
        google = json.loads((home / "google.json").read_text())
        import_module("sandbox.kubernetes.loop").run(cluster, google["url"], home, stop)
    finally:
        stop.set()


def main() -> int:
    """Command line of the control plane."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.kubernetes", description="The sandbox's Kubernetes.")
    parser.add_argument("--home", type=Path, required=True, help="where it tells its address and keeps its state")
    home = parser.parse_args().home.absolute()
    home.mkdir(parents=True, exist_ok=True)
    try:
        serve(home)
    except (Ended, toolchain.ToolchainError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
