"""End the waits of ProvisioningRequests that neither succeed nor fail.

A program of its own: a pod of provisioning_watchdog.py runs this file alone, so it uses only the standard library of
Python 3.9. Every $EVERY_S seconds it checks the waiting requests that Kueue's check $CHECK created. A request whose
pool is not in $POOLS, or that is older than $AGE_S, is made anew or given up:

anew      the Workload is deactivated, so that Kueue releases its quota; then its requests are deleted, since Kueue 0.14
          would reuse them; then the Workload is activated again and gets one of the flavors that exist now. Deleting
          the request alone is not enough: Kueue creates the same one again for as long as it holds the quota.
given up  the Workload is deactivated, as `kueuectl stop workload` does, and stays inactive.

Each step is derived from the objects, so a restart loses none. GKE cancels a deleted request's own request to Google.
https://github.com/kubernetes-sigs/kueue/blob/v0.14.0/pkg/controller/admissionchecks/provisioning/controller.go
https://github.com/GoogleCloudPlatform/cluster-autoscaler/blob/main/pkg/provisioningrequests/reconciler/resize_request_reconciler.go
https://github.com/kubernetes/autoscaler/issues/9490
"""

from __future__ import annotations

import calendar
import http.client
import json
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

POOL_LABEL = "accel.dev/pool"
ASKED_AGAIN = "accel.dev/provisioning-asked-again"
ASKING_AGAIN = "accel.dev/provisioning-again"
GIVEN_UP = "accel.dev/provisioning-given-up"
"""Same values as in accel/contract/gke.py."""

NODE_POOL = "cloud.google.com/gke-nodepool"
ENDED = {"Provisioned", "Failed", "BookingExpired", "CapacityRevoked"}
"""Conditions after which a request no longer waits.
https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1/types.go"""

_REQUESTS, _WORKLOADS = "/apis/autoscaling.x-k8s.io/v1", "/apis/kueue.x-k8s.io/v1beta1"
_PAGE = 200
_GONE = (404, 409)  # it is no more, or it has changed since it was read

Object = dict[str, Any]
"""Kubernetes object."""
Pools = dict[str, str]
"""Pool names by the author's key."""


@dataclass(frozen=True)
class Limits:
    """Limits of a wait, and how it ends. A request is compared with the list of pools only after `settle_s`, since the
    list may be older than the pool that accepted the request."""

    age_s: float
    settle_s: float
    recreate: bool
    most: int


@dataclass(frozen=True)
class PendingRequest:
    """Waiting request. `settled_s` counts from its creation or its acceptance, whichever is later; `missing` says which
    pool it waits for that does not exist."""

    age_s: float
    settled_s: float
    missing: str | None = None
    deleted: bool = False


class Act(NamedTuple):
    """Action for a Workload: `anew`, `give-up`, `delete` its requests, `wake` it (activate it again); empty: none."""

    verb: str = ""
    reason: str = ""
    times: int = 0


def holds(found: Object, kind: str) -> bool:
    """Return whether a condition of the object is true."""
    return any(each["type"] == kind and each["status"] == "True" for each in _conditions(found))


def waits(request: Object) -> bool:
    """Return whether the request has neither ended nor been provisioned."""
    return not any(holds(request, kind) for kind in ENDED)


def workload_of(request: Object, check: str) -> str | None:
    """Return the Workload for which the admission check created the request; None if the check did not create it."""
    for owner in request["metadata"].get("ownerReferences", []):
        name = owner["name"]
        ours = re.fullmatch(f"{re.escape(f'{name}-{check}')}-[0-9]+", request["metadata"]["name"])
        if owner["kind"] == "Workload" and owner["apiVersion"].startswith("kueue.x-k8s.io/") and ours:
            return name
    return None


def missing(selectors: list[dict[str, str]], details: dict[str, str], pools: Pools) -> str | None:
    """Describe the missing pool that a request is bound to, by its pods' selectors or by GKE's choice; None: there is
    none."""
    for selector in selectors:
        for label, known in ((POOL_LABEL, pools.keys()), (NODE_POOL, pools.values())):
            if label in selector and selector[label] not in known:
                return f"pool {selector[label]} is gone"
    chosen = details.get("NodePoolName")
    # Pools that GKE makes by itself are in no list of ours.
    if chosen and details.get("NodePoolAutoProvisioned") != "true" and chosen not in pools.values():
        return f"pool {chosen} is gone"
    return None


def decide(workload: Object, asked: list[PendingRequest], limits: Limits) -> Act:
    """Return the action for a Workload with these waiting requests."""
    metadata = workload["metadata"]
    marked = ASKING_AGAIN in metadata.get("labels", {})
    if metadata.get("deletionTimestamp") or holds(workload, "Admitted") or holds(workload, "Finished"):
        return Act()
    if workload["spec"].get("active", True) is False:
        if holds(workload, "QuotaReserved"):
            return Act()
        if any(not each.deleted for each in asked):
            return Act("delete", "asked anew" if marked else "the workload is not active")
        return Act("wake") if marked and not asked else Act()
    if marked:
        return Act("wake")  # somebody else made it active
    live = [each for each in asked if not each.deleted]
    gone = next((each.missing for each in live if each.missing and each.settled_s >= limits.settle_s), None)
    if gone is None and all(each.age_s < limits.age_s for each in live):
        return Act()
    reason = gone or f"no nodes came in {_span(limits.age_s)}"
    times = int(metadata.get("annotations", {}).get(ASKED_AGAIN, "0").partition(";")[0])
    if gone is None and not limits.recreate:
        return Act("give-up", reason)
    if times >= limits.most:
        return Act("give-up", f"{reason}; nodes were asked for anew {times} times before")
    return Act("anew", reason, times + 1)


def _span(seconds: float) -> str:
    return f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds:g} s"


def _conditions(found: Object) -> list[Object]:
    return found.get("status", {}).get("conditions") or []


class Api:
    """Kubernetes API client with the pod's account. Its methods raise OSError, HTTPException and ValueError."""

    def __init__(self, url: str, account: Path) -> None:
        self._url, self._account = url, account
        self._tls = ssl.create_default_context(cafile=str(account / "ca.crt")) if url.startswith("https") else None

    def ask(self, verb: str, path: str, body: Object | None = None) -> Object:
        """Send one request and return the answer. The body of a PATCH is merged."""
        # The token is rotated, so it is read for each request.
        headers = {
            "Authorization": f"Bearer {(self._account / 'token').read_text().strip()}",
            "Content-Type": "application/merge-patch+json" if verb == "PATCH" else "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=verb)  # noqa: S310  the API server
        with urllib.request.urlopen(request, timeout=30, context=self._tls) as answer:  # noqa: S310
            return json.load(answer)

    def items(self, path: str, **query: str) -> Iterator[Object]:
        """Yield all objects of a collection, page by page."""
        query["limit"] = str(_PAGE)
        while True:
            page = self.ask("GET", f"{path}?{urllib.parse.urlencode(query)}")
            yield from page["items"]
            query["continue"] = page["metadata"].get("continue", "")
            if not query["continue"]:
                return


def look(api: Api, check: str, pools: Pools, limits: Limits, now: float) -> None:
    """Check every request once and take the due actions. `now` is in seconds since 1970."""
    found: dict[tuple[str, str], list[Object]] = {}
    for request in api.items(f"{_REQUESTS}/provisioningrequests"):
        name = workload_of(request, check)
        if name and waits(request):
            found.setdefault((request["metadata"]["namespace"], name), []).append(request)
    for workload in api.items(f"{_WORKLOADS}/workloads", labelSelector=ASKING_AGAIN):
        found.setdefault((workload["metadata"]["namespace"], workload["metadata"]["name"]), [])
    for (namespace, name), requests in found.items():
        try:
            workload = api.ask("GET", f"{_WORKLOADS}/namespaces/{namespace}/workloads/{name}")
            act = decide(workload, [_asked(api, request, pools, now) for request in requests], limits)
            if act.verb:
                _DO[act.verb](api, workload, requests, act)
        except urllib.error.HTTPError as error:
            if error.code not in _GONE:
                say(f"{namespace}/{name}: {error}")


def _asked(api: Api, request: Object, pools: Pools, now: float) -> PendingRequest:
    metadata = request["metadata"]
    accepted = [each["lastTransitionTime"] for each in _conditions(request) if each["type"] == "Accepted"]
    selectors: list[dict[str, str]] = []
    for each in request["spec"]["podSets"]:
        path = f"/api/v1/namespaces/{metadata['namespace']}/podtemplates/{each['podTemplateRef']['name']}"
        try:
            selectors.append(api.ask("GET", path)["template"]["spec"].get("nodeSelector", {}))
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
    return PendingRequest(
        now - _at(metadata["creationTimestamp"]),
        now - max(_at(when) for when in [metadata["creationTimestamp"], *accepted]),
        missing(selectors, request.get("status", {}).get("provisioningClassDetails") or {}, pools),
        "deletionTimestamp" in metadata,
    )


def _at(text: str) -> float:
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def _anew(api: Api, workload: Object, _: list[Object], act: Act) -> None:
    asked = {ASKED_AGAIN: f"{act.times}; {act.reason}"}
    _change(api, workload, {"labels": {ASKING_AGAIN: "yes"}, "annotations": asked}, active=False)
    _tell(workload, f"nodes are asked for anew, time {act.times}: {act.reason}")


def _give_up(api: Api, workload: Object, _: list[Object], act: Act) -> None:
    _change(api, workload, {"annotations": {GIVEN_UP: act.reason}}, active=False)
    _tell(workload, f"given up: {act.reason}")


def _delete(api: Api, workload: Object, requests: list[Object], act: Act) -> None:
    for request in requests:
        metadata = request["metadata"]
        if "deletionTimestamp" in metadata:
            continue
        path = f"{_REQUESTS}/namespaces/{metadata['namespace']}/provisioningrequests/{metadata['name']}"
        # Its pod templates go first: Kueue would hand an old one that is still there to the next request.
        body = {"propagationPolicy": "Foreground", "preconditions": {"uid": metadata["uid"]}}
        api.ask("DELETE", path, body)
        _tell(workload, f"request {metadata['name']} is deleted: {act.reason}")


def _wake(api: Api, workload: Object, _: list[Object], __: Act) -> None:
    _change(api, workload, {"labels": {ASKING_AGAIN: None}, "annotations": {GIVEN_UP: None}}, active=True)
    _tell(workload, "is in its queue again")


_DO = {"anew": _anew, "give-up": _give_up, "delete": _delete, "wake": _wake}


def _change(api: Api, workload: Object, marks: Object, active: bool) -> None:
    """Change the Workload only if it is unchanged since it was read, so that a job that was cancelled meanwhile stays
    cancelled."""
    metadata = workload["metadata"]
    path = f"{_WORKLOADS}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}"
    marked = {"resourceVersion": metadata["resourceVersion"], **marks}
    api.ask("PATCH", path, {"metadata": marked, "spec": {"active": active}})


def _tell(workload: Object, text: str) -> None:
    say(f"{workload['metadata']['namespace']}/{workload['metadata']['name']}: {text}")


def say(text: str) -> None:
    """Write one line to the pod's log."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main() -> None:
    """Read the environment and check until killed."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    account = Path(os.environ.get("ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
    api = Api(f"https://{f'[{host}]' if ':' in host else host}:{port}", account)
    check, every_s = os.environ["CHECK"], float(os.environ["EVERY_S"])
    limits = Limits(
        age_s=float(os.environ["AGE_S"]),
        settle_s=float(os.environ["SETTLE_S"]),
        recreate=os.environ["AT_LIMIT"] == "recreate",
        most=int(os.environ["MOST"]),
    )
    while True:
        pools: Pools = json.loads(Path(os.environ["POOLS"]).read_text())
        try:
            look(api, check, pools, limits, time.time())
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            say(f"{error}; again in {every_s:g} s")
        time.sleep(every_s)


if __name__ == "__main__":
    main()
