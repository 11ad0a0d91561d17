"""When an object is ready (as pulumi-kubernetes has it, provider/pkg/await), and what its pods say where it is not."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sandbox.kubernetes.client import Cluster, Refusal

from .objects import State, about


class Broken(Exception):
    """It will not become ready; one line why."""


class Rule(NamedTuple):
    ready: Callable[[Cluster, State], str]
    """What it waits for; "" where it is ready. Raises Broken."""
    timeout_s: float = 600


def _conditions(live: State) -> dict[str, State]:
    return {each["type"]: each for each in _status(live).get("conditions") or []}


def _status(live: State) -> State:
    return live.get("status") or {}


def _holds(live: State, condition: str) -> bool:
    return _conditions(live).get(condition, {}).get("status") == "True"


def _stale(live: State) -> bool:
    return _status(live).get("observedGeneration", 0) < about(live).get("generation", 0)


def _counts(live: State, wanted: int, *names: str) -> str:
    if _stale(live):
        return "its controller has not seen it yet"
    found = {name: _status(live).get(name, 0) for name in names}
    short = [f"{name} is {count}" for name, count in found.items() if count < wanted]
    return f"{', '.join(short)}, wanted {wanted}" if short else ""


def _daemon_set(_: Cluster, live: State) -> str:
    names = ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
    return _counts(live, _status(live).get("desiredNumberScheduled", 0), *names)


def _deployment(_: Cluster, live: State) -> str:
    progress = _conditions(live).get("Progressing", {})
    if not _stale(live) and progress.get("status") == "False":
        raise Broken(f"{progress.get('reason')}: {progress.get('message')}")
    wanted = live["spec"].get("replicas", 1)
    waits = _counts(live, wanted, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return waits or ("old replicas are still there" if _status(live).get("replicas", 0) > wanted else "")


def _stateful_set(_: Cluster, live: State) -> str:
    wanted, status = live["spec"].get("replicas", 1), _status(live)
    waits = _counts(live, wanted, "currentReplicas", "readyReplicas")
    moves = status.get("currentRevision") != status.get("updateRevision")
    return waits or ("its pods are of the revision before" if moves and wanted else "")


def _job(_: Cluster, live: State) -> str:
    failed = _conditions(live).get("Failed", {})
    if failed.get("status") == "True":
        raise Broken(f"{failed.get('reason')}: {failed.get('message')}")
    return (
        "" if _holds(live, "Complete") else "it is suspended" if live["spec"].get("suspend") else "it is not complete"
    )


def _pod(_: Cluster, live: State) -> str:
    ready = _status(live).get("phase") == "Succeeded" or _holds(live, "Ready")
    return "" if ready else f"its phase is {_status(live).get('phase')}"


def _service(cluster: Cluster, live: State) -> str:
    spec = live["spec"]
    if spec.get("type") == "LoadBalancer" and not (_status(live).get("loadBalancer") or {}).get("ingress"):
        return "Service was not allocated an IP address; does your cloud provider support this?"
    if spec.get("clusterIP") == "None" or spec.get("type") == "ExternalName" or not spec.get("selector"):
        return ""
    path = cluster.path("discovery.k8s.io/v1", "EndpointSlice", namespace=about(live)["namespace"])
    slices = cluster.list(path, labelSelector=f"kubernetes.io/service-name={about(live)['name']}")
    if any(end.get("conditions", {}).get("ready") for one in slices for end in one.get("endpoints") or []):
        return ""
    return (
        "Service does not target any Pods. Selected Pods may not be ready, or field '.spec.selector' may not match "
        "labels on any Pods"
    )


def _phase(*wanted: str) -> Callable[[Cluster, State], str]:
    def ready(_: Cluster, live: State) -> str:
        phase = _status(live).get("phase")
        return "" if phase in wanted else f"its phase is {phase}, wanted {' or '.join(wanted)}"

    return ready


def _claim(cluster: Cluster, live: State) -> str:
    name = live["spec"].get("storageClassName")
    try:
        storage = cluster.get(cluster.path("storage.k8s.io/v1", "StorageClass", name)) if name else {}
    except Refusal as error:
        if error.status != 404:
            raise
        storage = {}
    late = storage.get("volumeBindingMode") == "WaitForFirstConsumer"
    return _phase("Pending", "Bound")(cluster, live) if late else _phase("Bound")(cluster, live)


def _quota(_: Cluster, live: State) -> str:
    same = _status(live).get("hard", {}) == live["spec"].get("hard", {})
    return "" if same else "its controller has not counted yet"


def _definition(_: Cluster, live: State) -> str:
    refused = _conditions(live).get("NamesAccepted", {})
    if refused.get("status") == "False":
        raise Broken(f"{refused.get('reason')}: {refused.get('message')}")
    return "" if _holds(live, "Established") else "it is not established"


RULES: dict[tuple[str, str], Rule] = {
    ("apps/v1", "DaemonSet"): Rule(_daemon_set),
    ("apps/v1", "Deployment"): Rule(_deployment),
    ("apps/v1", "StatefulSet"): Rule(_stateful_set),
    ("batch/v1", "Job"): Rule(_job),
    ("v1", "Pod"): Rule(_pod),
    ("v1", "Service"): Rule(_service),
    ("v1", "PersistentVolume"): Rule(_phase("Available", "Bound"), 300),
    ("v1", "PersistentVolumeClaim"): Rule(_claim, 300),
    ("v1", "ResourceQuota"): Rule(_quota, 60),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): Rule(_definition, 60),
}


def said_by_pods(cluster: Cluster, live: State) -> list[str]:
    """What keeps the pods of a workload, or the pod itself, from being ready; each message once."""
    if live["kind"] == "Pod":
        pods = [live]
    elif labels := (live.get("spec", {}).get("selector") or {}).get("matchLabels"):
        chosen = ",".join(f"{key}={value}" for key, value in labels.items())
        pods = cluster.list(cluster.path("v1", "Pod", namespace=about(live)["namespace"]), labelSelector=chosen)
    else:
        pods = []
    return list(dict.fromkeys(line for pod in pods for line in _said(pod)))


def _said(pod: State) -> Iterator[str]:
    name, status = about(pod)["name"], _status(pod)
    for condition in status.get("conditions") or []:
        if condition["status"] != "True" and condition.get("message") and status.get("phase") != "Succeeded":
            yield f"[Pod {name}]: {condition['message']}"
    for container in (*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])):
        yield from _container(name, container)


def _container(pod: str, container: Any) -> Iterator[str]:
    if container.get("ready"):
        return
    state = container.get("state") or {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    if waiting.get("message") and waiting.get("reason") != "ContainerCreating":
        yield f"[Pod {pod}]: [{waiting.get('reason')}] {waiting['message']}"
    if ended.get("exitCode"):
        yield f"[Pod {pod}]: container {container['name']!r} completed with exit code {ended['exitCode']}"
