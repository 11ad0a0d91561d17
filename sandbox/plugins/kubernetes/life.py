"""What is asked of the API server for one object, and the waits for what it becomes."""

import os
import re
import time
from typing import Any

from sandbox.kubernetes.client import Cluster, Refusal

from ..server import PartlyMade, Refused
from .objects import State, about, annotation, from_api, hidden, id_of, to_api
from .readiness import RULES, Broken, said_by_pods

MANAGER = "__fieldManager"
_POLL_S, _POLL_MOST_S = 0.05, 0.5
_RETRY_S = 5
_DELETE_S = 300
# Kinds whose deletion `skipAwait` does not wait for (pulumi-kubernetes, provider/pkg/metadata/overrides.go).
_UNAWAITED = {"DaemonSet", "Deployment", "Job", "Namespace", "Pod", "StatefulSet"}
_POLICIES = {"orphan": "Orphan", "background": "Background"}


def one_line(text: str) -> str:
    return re.sub(r"\s*\n\s*", "; ", text.strip())


def path_of(cluster: Cluster, api: str, kind: str, id: str) -> str:
    namespace, _, name = id.rpartition("/")
    return cluster.path(api, kind, name, namespace or None)


def live_object(cluster: Cluster, api: str, kind: str, id: str) -> State | None:
    """The live object; None where it, or its whole kind, is not there."""
    try:
        return cluster.get(path_of(cluster, api, kind, id))
    except Refusal as error:
        if error.status == 404:
            return None
        raise


def create(cluster: Cluster, inputs: State, manager: str, *, upsert: bool, force: bool, preview: bool) -> State:
    """Created, not applied: what is there already is not ours (github.com/pulumi/pulumi-kubernetes/pull/4278)."""
    query, body, give_up = _query(manager, preview), to_api(inputs), time.monotonic() + _RETRY_S
    while True:
        try:
            path = path_of(cluster, inputs["apiVersion"], inputs["kind"], id_of(inputs))
            ours = _from_the_start(cluster, path)
            if upsert or ours:
                return cluster.apply(path, body, force or ours, **query)
            return cluster.create(path.rpartition("/")[0], body, **query)
        except Refusal as error:
            # A namespace or a definition that another resource is making right now.
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
        # What the creation owns belongs to the apply from now on, or the two would conflict.
        fields = [{**entry, "operation": "Apply"} if _of_creation(entry, manager) else entry for entry in fields]
        version = about(live)["resourceVersion"]
        at = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": fields}, at]
        cluster.patch(path, patch, "json")
    return cluster.apply(path, body, force or (created and preview), **query)


def _query(manager: str, preview: bool) -> dict[str, str]:
    # The provider itself has unknown fields warned of and dropped; a warning that nobody reads is no help here.
    return {"fieldValidation": "Strict", "fieldManager": manager, **({"dryRun": "All"} if preview else {})}


def _from_the_start(cluster: Cluster, path: str) -> bool:
    """The sandbox's own, which no new cluster of a user has: JobSet and Kueue, whose controllers run from the start."""
    try:
        fields = about(cluster.get(path)).get("managedFields") or []
    except Refusal as error:
        if error.status == 404:
            return False
        raise
    return any(entry["manager"] == "sandbox" for entry in fields)


def _of_creation(entry: State, manager: str) -> bool:
    return entry["manager"] == manager and entry["operation"] == "Update" and not entry.get("subresource")


def settled(cluster: Cluster, inputs: State, live: State, manager: str) -> State:
    """Outputs of the object once it is ready. Raises PartlyMade where it does not become so."""
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
            raise PartlyMade(id_of(live), outputs, hidden(inputs), "; ".join(map(one_line, reasons))) from error
    return {**from_api(live), MANAGER: manager}


def delete(cluster: Cluster, api: str, kind: str, id: str, state: State) -> None:
    """Deleted and gone, with all that it owns; fine where it is not there. Raises Refused where it stays."""
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
            raise Refused(one_line(f"deleting {kind} ({id}): it is still there after {limit_s:g} s{_held(live)}"))
        time.sleep(wait)
        wait = min(wait * 1.5, _POLL_MOST_S)


def _timeout_s(state: State, default_s: float) -> float:
    asked = annotation(state, "timeoutSeconds")
    return float(asked) if asked.isdigit() else min(default_s, float(os.environ.get("SANDBOX_WAIT_S", "120")))


def _heard(cluster: Cluster, live: State) -> list[str]:
    try:
        return said_by_pods(cluster, live)
    except Refusal as error:
        return [f"its pods cannot be asked: {error}"]


def _held(live: Any) -> str:
    """Why an object that was deleted stays: its finalizers, and what a namespace says of its contents."""
    finalizers = [*(about(live).get("finalizers") or []), *((live.get("spec") or {}).get("finalizers") or [])]
    said = f": finalizers might be preventing deletion ({', '.join(finalizers)})" if finalizers else ""
    conditions = (live.get("status") or {}).get("conditions") or [] if live["kind"] == "Namespace" else []
    return "; ".join([said, *(each["message"] for each in conditions if each.get("status") == "True")])
