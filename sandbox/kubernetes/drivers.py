"""Which nodes have their NVIDIA driver, and so offer `nvidia.com/gpu`.

GKE installs it on nodes with the label gke-gpu-driver-version; elsewhere it is there once a pod of the DaemonSet
nvidia-driver-installer, or of the GPU operator's nvidia-driver-daemonset, runs on the node. GKE's own device plugin
then reports the GPUs, unless a label switches it off: then a DaemonSet named ...device-plugin... must run there.
https://cloud.google.com/kubernetes-engine/docs/how-to/gpus#installing_drivers, .../docs/how-to/gpu-operator
"""

from .client import Cluster, Object, Refusal
from .nodes import GPU, NO_PLUGIN_LABEL
from .pool import Pool
from .settings import Settings
from .store import Store

DRIVER_SETS = ("nvidia-driver-installer", "nvidia-driver-daemonset")
"""How the names of Google's installers begin, and of the GPU operator's."""
_PLUGIN = "device-plugin"


class Drivers:
    """Gives nodes their GPUs when they have a driver and a device plugin."""

    def __init__(self, cluster: Cluster, nodes: Store, pods: Store) -> None:
        self._cluster, self._nodes, self._pods = cluster, nodes, pods
        self._since: dict[str, float] = {}

    def tick(self, pools: list[Pool], settings: Settings) -> None:
        """Look at every node once. Raises Refusal."""
        groups = [group for pool in pools if GPU in pool.extended for group in pool.groups]
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
        """The names of the DaemonSets of which a ready pod runs on a node."""
        return {
            owner["name"]
            for pod in self._pods.all()
            if pod["spec"].get("nodeName") == node["metadata"]["name"] and pod["status"].get("phase") == "Running"
            for owner in pod["metadata"].get("ownerReferences") or []
            if owner["kind"] == "DaemonSet"
        }
