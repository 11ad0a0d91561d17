"""What stands for Google Compute Engine and the kubelets in the sandbox's cluster: nodes come, run pods, and go."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import requests

from accel.catalog.nearest import UnknownName

from ..google import scoped
from ..keys import key
from .autoscaler import Autoscaler
from .client import Cluster, Refusal
from .drivers import Drivers
from .kubelet import Kubelet
from .machines import Machines
from .pool import Pool
from .pools import Google
from .provisioning import COLLECTION, Provisioning
from .settings import SettingsFile
from .store import Store
from .streams import Streams

_KUBELET_S = 0.1  # between two looks at the processes
_CLOUD_S = 0.3
_log = logging.getLogger(__name__)


def run(cluster: Cluster, google_url: str, home: Path, stop: threading.Event) -> None:
    """Play nodes and pods until `stop` is set; what Google or the API server do not answer is asked again.

    Its speed and its faults are in DIR/nodes.json (settings.py); stockouts of machine types are Google's. Logs and
    commands of pods need the keys of DIR/kubernetes/keys.
    """
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
    given = {"ACCEL_STORAGE_ROOT": storage, "GOOGLE_OAUTH_ACCESS_TOKEN": scoped(key(home), "")}
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
    """Look again and again: soon after a change, else after a while."""
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
            stop.set()  # without this thread nothing would go on, and nobody would know
            raise


def _known(pool: Pool, unknown: set[str]) -> bool:
    """Whether the catalogue has the pool's machines; of those that it has not there are no nodes."""
    try:
        return bool(pool.labels)
    except UnknownName as error:
        if pool.link not in unknown:
            unknown.add(pool.link)
            _log.warning("node pool %s gets no nodes: %s", pool.link, error)
        return False
