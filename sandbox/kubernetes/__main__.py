"""`python -m sandbox.kubernetes --home DIR`: runs the control plane, writes DIR/kubernetes.json. What the pods of
JobSet and Kueue would find mounted and injected is kept so when their installation is made anew."""

import argparse
import json
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import toolchain
from ..keys import key
from ..loopback import NoFreePort
from ..starting import announce
from . import bootstrap
from .certificates import Certificates
from .client import Cluster, Object, Refusal
from .control_plane import ControlPlane, ProcessFailure
from .wipe import remember

_WATCH_S = 600
_AGAIN_S = 0.5
_HOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"

_Judge = Callable[[Object, Certificates], Mapping[str, Any] | None]
"""Function that returns the merge patch that corrects an object, or None for a correct one."""


def tend(cluster: Cluster, stop: threading.Event) -> None:
    """Keep Kueue's Secret and the authority of JobSet's webhooks ours, in its own threads, until `stop` is set. Kueue
    sets the authority of its webhooks, from its Secret; JobSet, run without rotation of its keys, does not."""
    certificates = Certificates(cluster.folder / bootstrap.KEYS)
    watched: dict[str, _Judge] = {
        f"/api/v1/namespaces/kueue-system/secrets/{bootstrap.SECRET}": _secret,
        **{
            f"{_HOOKS.format(kind)}/jobset-{kind}-webhook-configuration": _webhooks
            for kind in ("mutating", "validating")
        },
    }
    for path, judge in watched.items():
        threading.Thread(target=_keep, args=(cluster, path, judge, certificates, stop), daemon=True).start()


def _keep(cluster: Cluster, path: str, judge: _Judge, certificates: Certificates, stop: threading.Event) -> None:
    collection, _, name = path.rpartition("/")
    while not stop.is_set():
        try:
            for event in cluster.watch(collection, fieldSelector=f"metadata.name={name}", timeoutSeconds=_WATCH_S):
                change = judge(event["object"], certificates) if event["type"] != "DELETED" else None
                if change is not None:
                    cluster.patch(path, change)
        except Refusal:  # it has changed or was deleted meanwhile, or everything ends
            stop.wait(_AGAIN_S)


def _secret(found: Object, certificates: Certificates) -> Mapping[str, Any] | None:
    wanted = bootstrap.secret(certificates)
    return None if found.get("data") == wanted else {"data": wanted}


def _webhooks(found: Object, certificates: Certificates) -> Mapping[str, Any] | None:
    """Return the patch for webhooks. It replaces the list, so it has the object's version: no other change in between
    is lost."""
    ours, webhooks = bootstrap.ca_bundle(certificates), found.get("webhooks") or []
    if all(each["clientConfig"].get("caBundle") == ours for each in webhooks):
        return None
    told = [{**each, "clientConfig": {**each["clientConfig"], "caBundle": ours}} for each in webhooks]
    return {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "webhooks": told}


PLUGIN = "gke-gcloud-auth-plugin"
_PLUGIN = """#!/bin/sh
about='"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{}'
printf '{%s,"status":{"token":"%s"}}\\n' "$about" "$(cat "$(dirname -- "$0")/../key")"
"""
_LOOK_S = 0.2
_PODS_S = 3  # for the processes of pods to end


def serve(home: Path) -> None:
    """Serve until SIGTERM or SIGINT, and leave nothing running. Raises ProcessFailure where the control plane ends."""
    told = home / "kubernetes.json"
    told.unlink(missing_ok=True)  # of a killed server
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
        secret = {"token": layout.token, "ca": bootstrap.ca_bundle(layout.certificates)}
        _lend(home, layout.kubeconfig())
        announce(told, url=layout.url, endpoint=layout.endpoint, **secret)
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
    """Write a kubeconfig for users of kubectl, and the plugin that a kubeconfig of GKE names."""
    (home / "kubeconfig").touch(0o600)
    (home / "kubeconfig").write_text(kubeconfig)
    (home / "bin").mkdir(exist_ok=True)
    (home / "bin" / PLUGIN).write_text(_PLUGIN)
    (home / "bin" / PLUGIN).chmod(0o755)


def _nodes(cluster: Cluster, home: Path, stop: threading.Event) -> None:
    """Create the nodes of Google's side, once it is there. Without them nothing runs, so a failure ends everything."""
    try:
        while not (home / "google.json").exists():
            if stop.wait(_LOOK_S):
                return
        google = json.loads((home / "google.json").read_text())
        import_module("sandbox.kubernetes.loop").run(cluster, google["url"], home, stop)
    finally:
        stop.set()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sandbox.kubernetes", description="The sandbox's Kubernetes.")
    parser.add_argument("--home", type=Path, required=True, help="where it tells its address and keeps its state")
    home = parser.parse_args().home.absolute()
    home.mkdir(parents=True, exist_ok=True)
    try:
        serve(home)
    except (ProcessFailure, NoFreePort, toolchain.ToolchainError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
