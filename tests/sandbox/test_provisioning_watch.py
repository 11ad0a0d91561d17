"""The watchdog over ProvisioningRequests against the real API server and Kueue; nobody answers the requests here."""

import base64
import json
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.provisioning_watch import ASKED_AGAIN, ASKING_AGAIN, GIVEN_UP, Api, Limits, look
from sandbox.kubernetes.client import Cluster, Refusal
from tests.components.kubernetes import makers
from tests.sandbox.test_manifests import create, manifests
from tests.support.soak import soak_only
from tests.support.waiting import until

pytestmark = pytest.mark.engine

API = "kueue.x-k8s.io/v1beta1"
CHECK = "accel-q"
NEVER = 1e9
REQUESTS = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{makers.NAMESPACE}/provisioningrequests"
WORKLOADS = f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{makers.NAMESPACE}/workloads"
JOBS = f"/apis/batch/v1/namespaces/{makers.NAMESPACE}/jobs"
KEYS = ("one", "two")
POOLS = {key: f"{key}-0a1b2c3" for key in KEYS}


def limits(**changed: Any) -> Limits:
    return Limits(**{"age_s": NEVER, "settle_s": 0, "recreate": True, "most": 3, **changed})


class Watched:
    """A cluster with two queued pools, and the watchdog with the rights of its own account."""

    def __init__(self, cluster: Cluster, url: str, account: Path) -> None:
        self.cluster, self.url, self.account = cluster, url, account
        self.api = Api(url, account)

    def queue(self, *keys: str, name: str = "q", check: str = CHECK) -> None:
        """Kueue's queue over these pools."""
        resources = ("cpu", "memory", "nvidia.com/gpu")
        quotas = [{"name": each, "nominalQuota": "1000Gi"} for each in resources]
        group = {"coveredResources": list(resources), "flavors": [{"name": key, "resources": quotas} for key in keys]}
        checks = [{"name": check, "onFlavors": list(keys)}]
        self.put("ClusterQueue", name, {
            "namespaceSelector": {},
            "resourceGroups": [group],
            "admissionChecksStrategy": {"admissionChecks": checks},
        })  # fmt: skip

    def put(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        body = {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
        self.cluster.apply(self.cluster.path(API, kind, name, makers.NAMESPACE), body)

    def submit(self, name: str, queue: str = "q") -> None:
        requests = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
        container = {"name": "main", "image": "x.test/y:1", "resources": {"requests": requests, "limits": requests}}
        metadata = {"name": name, "labels": {"kueue.x-k8s.io/queue-name": queue}}
        spec = {"restartPolicy": "Never", "containers": [container]}
        self.cluster.create(JOBS, {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": {"suspend": True, "template": {"spec": spec}},
        })  # fmt: skip

    def workload(self, job: str) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            workloads = self.cluster.list(WORKLOADS)
            return [each for each in workloads if each["metadata"]["ownerReferences"][0]["name"] == job]

        return until(found)[0]

    def annotations(self, job: str) -> dict[str, str]:
        return self.workload(job)["metadata"].get("annotations") or {}

    def requests(self, job: str) -> list[dict[str, Any]]:
        name = self.workload(job)["metadata"]["name"]
        return [
            each
            for each in self.cluster.list(REQUESTS)
            if each["metadata"]["ownerReferences"][0]["name"] == name and "deletionTimestamp" not in each["metadata"]
        ]

    def request(self, job: str) -> dict[str, Any]:
        return until(lambda: self.requests(job))[0]

    def pool(self, request: dict[str, Any]) -> str | None:
        """What its pods are sent to; None while it has no template."""
        (each,) = request["spec"]["podSets"]
        path = f"/api/v1/namespaces/{makers.NAMESPACE}/podtemplates/{each['podTemplateRef']['name']}"
        try:
            found = self.cluster.get(path)
        except Refusal:
            return None
        owners = [one["uid"] for one in found["metadata"]["ownerReferences"]]
        return (
            found["template"]["spec"]["nodeSelector"]["accel.dev/pool"]
            if request["metadata"]["uid"] in owners
            else None
        )

    def look(self, pools: dict[str, str], changed: Limits) -> None:
        look(self.api, CHECK, pools, changed, time.time())

    def looked(self, pools: dict[str, str], changed: Limits, done: Callable[[], Any]) -> Any:
        """Looks until something has come of it."""

        def again() -> Any:
            self.look(pools, changed)
            return done()

        return until(again)


@pytest.fixture(scope="module")
def watched(control_plane: Path, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    cluster, told = Cluster.of(control_plane), json.loads((control_plane / "kubernetes.json").read_text())
    create(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": makers.NAMESPACE}})
    made = Watched(cluster, told["url"], account(cluster, tmp_path_factory.mktemp("client") / "account", told["ca"]))
    for key in KEYS:
        made.put("ResourceFlavor", key, {"nodeLabels": {"accel.dev/pool": key}})
    made.put("ProvisioningRequestConfig", CHECK, {"provisioningClassName": "queued-provisioning.gke.io"})
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": CHECK}
    for check in (CHECK, "theirs"):
        spec = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": parameters}
        made.put("AdmissionCheck", check, spec)
    for name, check in (("q", CHECK), ("theirs", "theirs")):
        made.queue(*KEYS, name=name, check=check)
        made.put("LocalQueue", name, {"clusterQueue": name})
    return made


def account(cluster: Cluster, folder: Path, ca: str) -> Path:
    """The files of the pod's account, with the rights that the component gives it and no other."""
    name = ""
    for body in manifests(makers.watchdog):
        if body["kind"] in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding"):
            create(cluster, body)
            name = body["metadata"]["name"]
    token = cluster.create(f"/api/v1/namespaces/kube-system/serviceaccounts/{name}/token", {"spec": {}})
    folder.mkdir()
    (folder / "token").write_text(token["status"]["token"])
    (folder / "ca.crt").write_bytes(base64.b64decode(ca))
    return folder


@soak_only
def test_nodes_of_a_pool_that_is_gone_are_asked_for_in_one_that_is_there(watched: Watched) -> None:
    watched.queue(*KEYS)
    watched.submit("gone")
    first = watched.request("gone")
    assert until(lambda: watched.pool(first)) == "one"
    watched.look(POOLS, limits())
    assert watched.request("gone")["metadata"]["uid"] == first["metadata"]["uid"], "its pool is there"
    # Without the pool in the queue Kueue 0.14 drops its check and lets the job start.
    watched.queue("two", "one")
    left = {"two": POOLS["two"]}
    new = watched.looked(
        left, limits(), lambda: [each for each in watched.requests("gone") if watched.pool(each) == "two"]
    )
    assert new[0]["metadata"]["uid"] != first["metadata"]["uid"]
    found = watched.workload("gone")
    assert found["metadata"]["annotations"][ASKED_AGAIN] == "1; pool one is gone"
    assert found["spec"]["active"] is True and ASKING_AGAIN not in found["metadata"].get("labels", {})
    # It is left alone now.
    watched.look(left, limits())
    assert watched.workload("gone")["metadata"]["annotations"][ASKED_AGAIN].startswith("1;")
    watched.queue(*KEYS)


def test_nodes_of_a_pool_that_was_replaced_are_asked_for_anew(watched: Watched) -> None:
    watched.submit("replaced")
    first = watched.request("replaced")
    accepted = {"type": "Accepted", "status": "True", "reason": "a", "message": "", "lastTransitionTime": stamp()}
    status = {"conditions": [accepted], "provisioningClassDetails": {"NodePoolName": "one-7777777"}}
    watched.cluster.patch(f"{REQUESTS}/{first['metadata']['name']}/status", {"status": status})
    watched.look(POOLS, limits(settle_s=900))
    assert watched.workload("replaced")["spec"]["active"] is True, "the list may be older than the pool"
    uid = first["metadata"]["uid"]
    new = watched.looked(
        POOLS, limits(), lambda: [each for each in watched.requests("replaced") if each["metadata"]["uid"] != uid]
    )
    assert until(lambda: watched.pool(new[0])) == "one"
    assert watched.workload("replaced")["metadata"]["annotations"][ASKED_AGAIN] == "1; pool one-7777777 is gone"


def stamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def test_an_old_request_is_given_up(watched: Watched) -> None:
    watched.submit("old")
    watched.request("old")
    given_up = limits(age_s=0, recreate=False)
    found = watched.looked(POOLS, given_up, lambda: not watched.requests("old") and watched.workload("old"))
    assert found["metadata"]["annotations"][GIVEN_UP] == "no nodes came in 0 s"
    # Kueue makes no other, and it stays so.
    for _ in range(3):
        watched.look(POOLS, given_up)
    found = watched.workload("old")
    held = {each["type"]: each["status"] for each in found["status"]["conditions"]}
    assert (found["spec"]["active"], held["QuotaReserved"], watched.requests("old")) == (False, "False", [])
    assert watched.cluster.get(f"{JOBS}/old")["spec"]["suspend"] is True


def test_a_job_is_put_back_into_its_queue_a_few_times(watched: Watched) -> None:
    watched.submit("again")
    watched.request("again")
    twice = limits(age_s=0, most=2)
    watched.looked(POOLS, twice, lambda: GIVEN_UP in watched.annotations("again"))
    annotations = watched.annotations("again")
    assert annotations[ASKED_AGAIN] == "2; no nodes came in 0 s"
    assert annotations[GIVEN_UP] == "no nodes came in 0 s; nodes were asked for anew 2 times before"


def test_a_request_that_is_only_deleted_is_made_again_for_the_same_pool(watched: Watched) -> None:
    """Why the watchdog takes the quota back first; where this fails, Kueue has learned better."""
    watched.queue("one", "two")
    watched.submit("deleted")
    first = watched.request("deleted")
    until(lambda: watched.pool(first))
    watched.queue("two", "one")
    watched.cluster.delete(f"{REQUESTS}/{first['metadata']['name']}", {"propagationPolicy": "Foreground"})
    uid = first["metadata"]["uid"]
    new = until(lambda: [each for each in watched.requests("deleted") if each["metadata"]["uid"] != uid])
    assert until(lambda: watched.pool(new[0])) == "one"


def test_the_program_is_what_the_pod_runs(watched: Watched, tmp_path: Path) -> None:
    watched.submit("program")
    watched.request("program")
    made = {body["kind"]: body for body in manifests(makers.watchdog)}
    for name, text in made["ConfigMap"]["data"].items():
        (tmp_path / name).write_text(text)
    (container,) = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    command = [each.replace("/etc/accel", str(tmp_path)) for each in container["command"]]
    told = {each["name"]: each["value"].replace("/etc/accel", str(tmp_path)) for each in container["env"]}
    server = urllib.parse.urlsplit(watched.url)
    quick = {"EVERY_S": "0.1", "SETTLE_S": "0", "MOST": "0", "ACCOUNT": str(watched.account)}
    here = {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, *command[1:]], env={**told, **quick, **here}, stderr=log)
    try:
        # Its pools are others than those of this test.
        until(lambda: GIVEN_UP in watched.annotations("program") and not watched.requests("program"))
    finally:
        process.terminate()
        process.wait(120)
    name = watched.workload("program")["metadata"]["name"]
    line = f"{makers.NAMESPACE}/{name}: given up: pool two is gone; nodes were asked for anew 0 times before"
    assert line in (tmp_path / "log").read_text().splitlines()


def test_requests_of_other_checks_are_let_alone(watched: Watched) -> None:
    watched.submit("theirs", "theirs")
    uid = watched.request("theirs")["metadata"]["uid"]
    for _ in range(3):
        watched.look({"three": "three-0a1b2c3"}, limits(age_s=0))
    assert watched.workload("theirs")["spec"]["active"] is True
    assert watched.request("theirs")["metadata"]["uid"] == uid


def test_nodes_for_a_job_that_was_stopped_are_not_asked_for_any_more(watched: Watched) -> None:
    watched.submit("stopped")
    watched.request("stopped")
    path = f"{WORKLOADS}/{watched.workload('stopped')['metadata']['name']}"
    watched.cluster.patch(path, {"spec": {"active": False}})
    watched.looked(POOLS, limits(), lambda: not watched.requests("stopped"))
    assert GIVEN_UP not in (watched.workload("stopped")["metadata"].get("annotations") or {})


def test_what_has_changed_since_it_was_read_is_left_for_the_next_look(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.submit("changed")
    watched.request("changed")
    path = f"{WORKLOADS}/{watched.workload('changed')['metadata']['name']}"
    ask = watched.api.ask

    def cancelled(verb: str, asked: str, body: Any = None) -> Any:
        if (verb, asked) == ("PATCH", path):
            watched.cluster.patch(path, {"spec": {"active": False}})
        return ask(verb, asked, body)

    monkeypatch.setattr(watched.api, "ask", cancelled)
    watched.look({"three": "three-0a1b2c3"}, limits())
    found = watched.workload("changed")
    assert found["spec"]["active"] is False and ASKING_AGAIN not in (found["metadata"].get("labels") or {})
