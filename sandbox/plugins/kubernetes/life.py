"""Requests to the API server for one object, and the waits for its readiness, which are those of pulumi-kubernetes,
provider/pkg/await."""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sandbox.kubernetes.client import Cluster, Refusal, conditions, has_condition

from ..server import PartialCreation, ProviderError, one_line
from .objects import State, about, annotation, from_api, hide_secret, id_of, to_api


class Broken(Exception):
    """Reason, in one line, why an object will not become ready."""


class Rule(NamedTuple):
    ready: Callable[[Cluster, State], str]
    """Function that returns what the object waits for, "" once it is ready. Raises Broken."""
    timeout_s: float = 600


def _status(live: State) -> State:
    return live.get("status") or {}


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
    progress = conditions(live).get("Progressing", {})
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
    failed = conditions(live).get("Failed", {})
    if failed.get("status") == "True":
        raise Broken(f"{failed.get('reason')}: {failed.get('message')}")
    if has_condition(live, "Complete"):
        return ""
    return "it is suspended" if live["spec"].get("suspend") else "it is not complete"


def _pod(_: Cluster, live: State) -> str:
    ready = _status(live).get("phase") == "Succeeded" or has_condition(live, "Ready")
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
    refused = conditions(live).get("NamesAccepted", {})
    if refused.get("status") == "False":
        raise Broken(f"{refused.get('reason')}: {refused.get('message')}")
    return "" if has_condition(live, "Established") else "it is not established"


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


def pod_messages(cluster: Cluster, live: State) -> list[str]:
    """Return what keeps the pods of a workload, or the pod itself, from being ready; each message once."""
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


MANAGER = "__fieldManager"
_POLL_S, _POLL_MOST_S = 0.05, 0.5
_RETRY_S = 5
_DELETE_S = 300
# Kinds whose deletion `skipAwait` does not wait for (pulumi-kubernetes, provider/pkg/metadata/overrides.go).
_UNAWAITED = {"DaemonSet", "Deployment", "Job", "Namespace", "Pod", "StatefulSet"}
_POLICIES = {"orphan": "Orphan", "background": "Background"}


def path_of(cluster: Cluster, api: str, kind: str, id: str) -> str:
    namespace, _, name = id.rpartition("/")
    return cluster.path(api, kind, name, namespace or None)


def live_object(cluster: Cluster, api: str, kind: str, id: str) -> State | None:
    """Return the live object; None where it, or its whole kind, does not exist."""
    try:
        return cluster.get(path_of(cluster, api, kind, id))
    except Refusal as error:
        if error.status == 404:
            return None
        raise


def create(cluster: Cluster, inputs: State, manager: str, *, upsert: bool, force: bool, preview: bool) -> State:
    """Create without applying: an existing object is not ours (github.com/pulumi/pulumi-kubernetes/pull/4278)."""
    query, body, give_up = _query(manager, preview), to_api(inputs), time.monotonic() + _RETRY_S
    while True:
        try:
            path = path_of(cluster, inputs["apiVersion"], inputs["kind"], id_of(inputs))
            ours = _from_the_start(cluster, path)
            if upsert or ours:
                return cluster.apply(path, body, force or ours, **query)
            return cluster.create(path.rpartition("/")[0], body, **query)
        except Refusal as error:
            # A namespace or a definition that another resource is creating right now.
            if error.status != 404 or preview or time.monotonic() > give_up:
                raise
            time.sleep(_POLL_MOST_S)


def update(cluster: Cluster, id: str, inputs: State, manager: str, *, force: bool, preview: bool) -> State:
    path = path_of(cluster, inputs["apiVersion"], inputs["kind"], id)
    query, live, body = _query(manager, preview), cluster.get(path), to_api(inputs)
    if inputs["kind"] == "CustomResourceDefinition":  # replaced as a whole, as kubectl replace does; its objects stay
        body = {**body, "metadata": {**about(body), "resourceVersion": about(live)["resourceVersion"]}}
        return cluster.replace(path, body, **query)
    fields = about(live).get("managedFields") or []
    created = any(_of_creation(entry, manager) for entry in fields)
    if created and not preview:
        # The fields of the creation belong to the apply from now on, or the two would conflict.
        fields = [{**entry, "operation": "Apply"} if _of_creation(entry, manager) else entry for entry in fields]
        version = about(live)["resourceVersion"]
        at = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": fields}, at]
        cluster.patch(path, patch, "json")
    return cluster.apply(path, body, force or (created and preview), **query)


def _query(manager: str, preview: bool) -> dict[str, str]:
    # The provider itself only warns of unknown fields and drops them; nobody would read the warning here.
    return {"fieldValidation": "Strict", "fieldManager": manager, **({"dryRun": "All"} if preview else {})}


def _from_the_start(cluster: Cluster, path: str) -> bool:
    """Return whether an object is the sandbox's own: JobSet and Kueue, whose controllers run from the start. A user's
    new cluster has none of them."""
    try:
        fields = about(cluster.get(path)).get("managedFields") or []
    except Refusal as error:
        if error.status == 404:
            return False
        raise
    return any(entry["manager"] == "sandbox" for entry in fields)


def _of_creation(entry: State, manager: str) -> bool:
    return entry["manager"] == manager and entry["operation"] == "Update" and not entry.get("subresource")


def settle(cluster: Cluster, inputs: State, live: State, manager: str) -> State:
    """Wait until the object is ready, and return its outputs. Raises PartialCreation where it does not become ready."""
    rule = RULES.get((live["apiVersion"], live["kind"]))
    if rule and annotation(inputs, "skipAwait") != "true":
        path = path_of(cluster, live["apiVersion"], live["kind"], id_of(live))
        give_up, wait = time.monotonic() + _timeout_s(inputs, rule.timeout_s), _POLL_S
        try:
            while waits := rule.ready(cluster, live):
                if time.monotonic() > give_up:
                    raise Broken(f"timed out, {waits}")
                time.sleep(wait)
                wait = min(wait * 1.5, _POLL_MOST_S)
                live = cluster.get(path)
        except (Broken, Refusal) as error:
            reasons = [f"{live['kind']} ({id_of(live)}) was made, but is not ready: {error}", *_heard(cluster, live)]
            outputs = {**from_api(live), MANAGER: manager}
            raise PartialCreation(
                id_of(live), outputs, hide_secret(inputs), "; ".join(map(one_line, reasons))
            ) from error
    return {**from_api(live), MANAGER: manager}


def delete(cluster: Cluster, api: str, kind: str, id: str, state: State) -> None:
    """Delete an object, if there is one, with all that it owns; wait until it is gone, else raise ProviderError."""
    policy = _POLICIES.get(annotation(state, "deletionPropagationPolicy").lower(), "Foreground")
    try:
        cluster.delete(path_of(cluster, api, kind, id), {"propagationPolicy": policy})
    except Refusal as error:
        if error.status == 404:
            return
        raise
    if annotation(state, "skipAwait") == "true" and kind in _UNAWAITED:
        return
    limit_s, wait = _timeout_s(state, _DELETE_S), _POLL_S
    give_up = time.monotonic() + limit_s
    while live := live_object(cluster, api, kind, id):
        if time.monotonic() > give_up:
            raise ProviderError(one_line(f"deleting {kind} ({id}): it is still there after {limit_s:g} s{_held(live)}"))
        time.sleep(wait)
        wait = min(wait * 1.5, _POLL_MOST_S)


def _timeout_s(state: State, default_s: float) -> float:
    asked = annotation(state, "timeoutSeconds")
    return float(asked) if asked.isdigit() else min(default_s, float(os.environ.get("SANDBOX_WAIT_S", "120")))


def _heard(cluster: Cluster, live: State) -> list[str]:
    try:
        return pod_messages(cluster, live)
    except Refusal as error:
        return [f"its pods cannot be asked: {error}"]


def _held(live: Any) -> str:
    """Return why a deleted object stays: its finalizers, and what a namespace says of its contents."""
    finalizers = [*(about(live).get("finalizers") or []), *((live.get("spec") or {}).get("finalizers") or [])]
    said = f": finalizers might be preventing deletion ({', '.join(finalizers)})" if finalizers else ""
    conditions = (live.get("status") or {}).get("conditions") or [] if live["kind"] == "Namespace" else []
    return "; ".join([said, *(each["message"] for each in conditions if each.get("status") == "True")])
