"""What a namespace for jobs takes: pods as our own client and components make them, at the real API server."""

from pathlib import Path
from typing import Any

import pytest

from sandbox.kubernetes.client import Cluster, Refusal
from tests.components.kubernetes import makers
from tests.jobs.backends.gke_target import make_request, make_target
from tests.sandbox.test_manifests import manifests

RESTRICTED: dict[str, Any] = {"queue": None, "jobset": False, "pod_security": "restricted"}
MOUNTS = [{"source": "gs://acme-data/models", "path": "/models"}]
CPU: dict[str, Any] = {"cpus": 1, "memory_mib": 500}


@pytest.fixture(scope="module")
def cluster(control_plane: Path) -> Cluster:
    """With a namespace as a stack makes it that says nothing of it."""
    made = Cluster.of(control_plane)
    for body in manifests(lambda _: makers.namespace("team")):
        if body["kind"] in ("Namespace", "ServiceAccount", "NetworkPolicy"):
            path = made.path(body["apiVersion"], body["kind"], namespace=body["metadata"].get("namespace"))
            made.create(path, body, fieldValidation="Strict")
    return made


def pod(body: dict[str, Any]) -> dict[str, Any]:
    """The pod of a request's Job, which comes after a Service where there is one."""
    template = body["objects"][-1]["spec"]["template"]
    spec = {**template["spec"], "serviceAccountName": "jobs"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def refusal(cluster: Cluster, body: dict[str, Any]) -> str:
    try:
        cluster.create("/api/v1/namespaces/team/pods", body, dryRun="All")
    except Refusal as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(
    "fields",
    [
        CPU,
        {**CPU, "mounts": MOUNTS},
        {**CPU, "gke": {"user": 1000}},
        {"accelerator": {"type": "a100", "count": 1}, "shm_mib": 1024},
        {"accelerator": {"type": "v5litepod-4"}},
    ],
    ids=["plain", "mounts", "user", "gpu", "tpu"],
)
def test_a_job_s_pod_is_taken(cluster: Cluster, fields: dict[str, Any]) -> None:
    """Of a target that does not say, as of an older stack, it is refused in the server's words."""
    made = pod(make_request(make_target(**RESTRICTED), **fields).body)
    assert refusal(cluster, made) == ""
    older = pod(make_request(make_target(**{**RESTRICTED, "pod_security": None}), **fields).body)
    assert 'violates PodSecurity "restricted:latest"' in refusal(cluster, older)


def test_a_privileged_pod_is_refused(cluster: Cluster) -> None:
    made = pod(make_request(make_target(**RESTRICTED), **CPU).body)
    made["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert "privileged" in refusal(cluster, made)


def test_the_probe_of_drivers_is_taken(cluster: Cluster) -> None:
    for body in manifests(makers.MAKERS["driver-probe"]):
        template = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": body["spec"]["template"]["spec"],
        }
        assert refusal(cluster, template) == ""


def test_nobody_else_connects_to_its_pods(cluster: Cluster) -> None:
    (policy,) = cluster.list("/apis/networking.k8s.io/v1/namespaces/team/networkpolicies")
    assert policy["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {}}]}],
    }
