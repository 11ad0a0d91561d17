"""Loop that plays Google Compute Engine and the kubelets in the sandbox's cluster: nodes come, run pods, and go."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

from accel.catalog.nearest import UnknownName

from ..google import scope_token
from ..keys import key
from .autoscaler import COLLECTION, Autoscaler, Provisioning
from .client import Cluster, Object, Refusal, has_condition
from .kubelet import Kubelet
from .machines import Machines
from .nodes import NO_PLUGIN_LABEL, groups_of
from .pool import GPU, Pool
from .settings import Settings, SettingsFile
from .store import Store
from .streams import Streams

DRIVER_SETS = ("nvidia-driver-installer", "nvidia-driver-daemonset")
"""Prefixes of the names of Google's driver installers, and of the GPU operator's."""
_PLUGIN = "device-plugin"


class Drivers:
    """Drivers of nodes, which have their GPUs once a driver and a device plugin are there. GKE installs the driver on
    nodes with the label gke-gpu-driver-version; elsewhere it is there once a pod of the DaemonSet
    nvidia-driver-installer, or of the GPU operator's nvidia-driver-daemonset, is ready on the node. GKE's own device
    plugin then reports the GPUs, unless a label switches it off: then a pod of a DaemonSet named ...device-plugin...
    must be ready there. A pod that runs may not be ready: its containers may wait to be started again, and the
    operator's driver installs itself in a container that runs.
    https://cloud.google.com/kubernetes-engine/docs/how-to/gpus#installing_drivers, .../docs/how-to/gpu-operator,
    https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-conditions,
    https://github.com/NVIDIA/gpu-operator/blob/main/assets/state-driver/0500_daemonset.yaml"""

    def __init__(self, cluster: Cluster, nodes: Store, pods: Store) -> None:
        self._cluster, self._nodes, self._pods = cluster, nodes, pods
        self._since: dict[str, float] = {}

    def tick(self, pools: list[Pool], settings: Settings) -> None:
        """Look at every node once. Raises Refusal."""
        groups = [group for pool in pools if GPU in pool.extended for group in groups_of(pool)]
        for node in self._nodes.all():
            group = next((group for group in groups if group.holds(node)), None)
            if group is None or GPU in node["status"].get("allocatable", {}):
                continue
            if not self._equipped(node, group.pool):
                continue
            name = node["metadata"]["name"]
            if settings.now() < self._since.setdefault(name, settings.now()) + settings.driver_s:
                continue
            count = {GPU: str(group.pool.extended[GPU])}
            try:
                change = {"status": {"capacity": count, "allocatable": count}}
                self._nodes.put(self._cluster.patch(f"/api/v1/nodes/{name}/status", change))
            except Refusal as error:
                if error.status != 404:
                    raise

    def _equipped(self, node: Object, pool: Pool) -> bool:
        labels, sets = node["metadata"]["labels"], self._daemon_sets(node)
        driver = pool.driver or any(name.startswith(DRIVER_SETS) for name in sets)
        own_plugin = labels.get(NO_PLUGIN_LABEL) == "true"
        return bool(driver) and (not own_plugin or any(_PLUGIN in name for name in sets))

    def _daemon_sets(self, node: Object) -> set[str]:
        """Return the names of the DaemonSets that have a ready pod on a node."""
        return {
            owner["name"]
            for pod in self._pods.all()
            if pod["spec"].get("nodeName") == node["metadata"]["name"] and has_condition(pod, "Ready")
            for owner in pod["metadata"].get("ownerReferences") or []
            if owner["kind"] == "DaemonSet"
        }


_TIMEOUT_S = 10


class Google:
    """Client of the sandbox's Google. Every method raises requests.RequestException for an error."""

    def __init__(self, url: str, home: Path) -> None:
        self._url, self._token = url.rstrip("/"), home / "key"
        self._http = requests.Session()
        self._http.trust_env = False
        self._sizes: dict[str, int] = {}

    def pools(self) -> list[Pool]:
        """Return all node pools that are not being deleted. One without autoscaling has the size that was set last."""
        clusters = self._get("container.googleapis.com/v1/projects/-/locations/-/clusters").get("clusters") or []
        return [
            Pool(cluster, self._sized(body), cluster["selfLink"].partition("/projects/")[2].partition("/")[0])
            for cluster in clusters
            for body in cluster.get("nodePools") or []
            if cluster.get("status") != "STOPPING" and body.get("status") != "STOPPING"
        ]

    def out_of_stock(self) -> set[str]:
        """Return the machine types, alone or as ZONE/TYPE, that cannot be had."""
        return set(self._get("sandbox-api/faults").get("stockout") or [])

    def resize(self, sizes: dict[str, int]) -> None:
        """Report the sizes that the autoscaler gave to groups, by their paths. Unchanged ones are left out."""
        if changed := {path: size for path, size in sizes.items() if self._sizes.get(path) != size}:
            self._http.post(
                f"{self._url}/sandbox-api/sizes", json=changed, headers=self._headers(), timeout=_TIMEOUT_S
            ).raise_for_status()
        self._sizes = sizes

    def _sized(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a pool's body with the current size of its groups. Google's own initialNodeCount does not change."""
        if (body.get("autoscaling") or {}).get("enabled"):
            return body
        for url in body.get("instanceGroupUrls") or []:
            group = self._get(f"compute.googleapis.com/compute/v1/{url.partition('/compute/v1/')[2]}")
            return {**body, "initialNodeCount": group["targetSize"]}
        return body

    def _headers(self) -> dict[str, str]:
        token = self._token.read_text().strip() if self._token.exists() else ""
        return {"Authorization": f"Bearer {scope_token(token, '')}"}

    def _get(self, path: str) -> dict[str, Any]:
        answer = self._http.get(f"{self._url}/{path}", headers=self._headers(), timeout=_TIMEOUT_S)
        answer.raise_for_status()
        return answer.json()


_KUBELET_S = 0.1  # between two looks at the processes
_CLOUD_S = 0.3
_log = logging.getLogger(__name__)


def run(cluster: Cluster, google_url: str, home: Path, stop: threading.Event) -> None:
    """Play nodes and pods until `stop` is set. Calls that Google or the API server do not answer are repeated.
    DIR/nodes.json has its speed and its faults (settings.py); stockouts of machine types are Google's. Logs and
    commands of pods need the keys of DIR/kubernetes/keys."""
    changed = threading.Event()
    paths = {
        "nodes": "/api/v1/nodes",
        "pods": "/api/v1/pods",
        "services": "/api/v1/services",
        "daemons": "/apis/apps/v1/daemonsets",
        "asked": COLLECTION,
    }
    stores = {name: Store(cluster, path, changed, stop) for name, path in paths.items()}
    for name in ("nodes", "pods", "services", "daemons"):
        stores[name].wait()
    settings = SettingsFile(home)
    storage = f"{google_url}/storage.googleapis.com/"
    given = {"ACCEL_STORAGE_ROOT": storage, "GOOGLE_OAUTH_ACCESS_TOKEN": scope_token(key(home), "")}
    kubelet = Kubelet(cluster, stores["nodes"], stores["pods"], stores["services"], home / "jobs", given)
    streams = Streams(kubelet, home / "kubernetes" / "keys")
    machines = Machines(cluster, stores["nodes"], stores["pods"], stores["daemons"], streams.port)
    autoscaler = Autoscaler(machines, stores["pods"])
    drivers = Drivers(cluster, stores["nodes"], stores["pods"])
    provisioning = Provisioning(cluster, machines, stores["asked"], stores["nodes"])
    google, unknown = Google(google_url, home), set[str]()

    def kubelets() -> None:
        kubelet.tick(settings.now)

    def cloud() -> None:
        now = settings.read()
        now.exhausted = google.out_of_stock()
        pools = [pool for pool in google.pools() if _known(pool, unknown)]
        machines.tick(pools, now)
        provisioning.tick(now)
        autoscaler.tick(now)
        google.resize(machines.sizes())
        drivers.tick(pools, now)

    threads = [
        threading.Thread(target=_again, args=(kubelets, _KUBELET_S, changed, stop)),
        threading.Thread(target=_again, args=(cloud, _CLOUD_S, threading.Event(), stop)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kubelet.stop()
    streams.shutdown()


def _again(look: Callable[[], None], every_s: float, changed: threading.Event, stop: threading.Event) -> None:
    """Call `look` repeatedly: soon after a change, else after a while."""
    while not stop.is_set():
        changed.wait(every_s)
        changed.clear()
        try:
            look()
        except (Refusal, requests.RequestException, ValueError) as error:
            if not stop.is_set():
                _log.warning("%s: %s", type(error).__name__, error)
            stop.wait(every_s)
        except BaseException:
            stop.set()  # without this thread nothing would go on, and nobody would notice
            raise


def _known(pool: Pool, unknown: set[str]) -> bool:
    """Return whether the catalogue has the pool's machines. A pool of unknown machines has no nodes."""
    try:
        return bool(pool.labels)
    except UnknownName as error:
        if pool.link not in unknown:
            unknown.add(pool.link)
            _log.warning("node pool %s gets no nodes: %s", pool.link, error)
        return False
