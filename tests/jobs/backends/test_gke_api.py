"""What is rendered is what a real API server, JobSet and Kueue take: every golden request, no field dropped."""

from pathlib import Path

import pytest

from jobs.backends.gke.labels import Scope
from jobs.backends.gke.submit import path_of
from sandbox.kubernetes.client import Cluster, Refusal
from tests.jobs.backends.gke_target import make_request, make_target
from tests.jobs.backends.test_gke_render import CPU, JOBS, PLAIN

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def cluster(control_plane: Path) -> Cluster:
    found = Cluster.of(control_plane)
    found.create("/api/v1/namespaces", {"metadata": {"name": "team-a"}})
    return found


def sent(cluster: Cluster, objects: list[dict[str, object]], scope: str) -> None:
    for each in objects:
        cluster.create(path_of(Scope.parse(scope), each), each, dryRun="All", fieldValidation="Strict")


@pytest.mark.parametrize("case", JOBS)
def test_every_golden_request(cluster: Cluster, case: str) -> None:
    target, fields = JOBS[case]
    body = make_request(make_target(**target), **fields).body
    sent(cluster, body["objects"], body["scope"])


@pytest.mark.parametrize("queue", ["team-a", None])
@pytest.mark.parametrize("failures, lost", [(None, None), (2, None), (None, 2), (2, 0), (2, 3)])
def test_every_way_of_trying_again(cluster: Cluster, queue: str | None, failures: int | None, lost: int | None) -> None:
    for shape in ({}, {"tasks": 10}, {"nodes": 3}):
        target = make_target(queue=queue)
        name = "x" * 100
        body = make_request(target, **CPU, **shape, name=name, retries=failures, lost_retries=lost).body
        sent(cluster, body["objects"], body["scope"])


def test_the_server_would_say_so(cluster: Cluster) -> None:
    body = make_request(make_target(**PLAIN), **CPU).body
    body["objects"][0]["spec"]["template"]["spec"]["tolerate"] = []
    with pytest.raises(Refusal, match="unknown field"):
        sent(cluster, body["objects"], body["scope"])
