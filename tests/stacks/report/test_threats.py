"""Which changes touch which jobs."""

from typing import Any

import pytest

from accel.contract.gke import GkeTarget
from accel.contract.google_jobs import VertexTarget
from accel.contract.targets import LocalTarget
from jobs.client.live.job import Live, ground
from jobs.client.live.search import _stands_on  # pyright: ignore[reportPrivateUsage]
from stacks.operations.report.threats import Threat, _is_hit, hits, loss, threats  # pyright: ignore[reportPrivateUsage]

from .steps import preview, step

ENVIRONMENT = "aws:batch/computeEnvironment:ComputeEnvironment"
CLUSTER = "arn:aws:ecs:us-east-1:210020003000:cluster/AWSBatch-a-1"
POOL = "gcp:container/nodePool:NodePool"
IN_POOL = {"project": "p", "location": "us-central1", "cluster": "c", "name": "l4-1"}


def of(op: str, kind: str, **state: Any) -> list[tuple[str, str, bool]]:
    (change,) = preview(step(op, kind, "x", **state)).changes
    return [(each.place, each.fate, each.queued) for each in threats(change)]


def environment(op: str, **state: Any) -> list[tuple[str, str, bool]]:
    return of(op, ENVIRONMENT, outputs={"ecsClusterArn": CLUSTER, "region": "us-east-1"}, **state)


def test_an_environment_waits_or_terminates_as_its_tag_says() -> None:
    assert environment("delete") == [("cluster:AWSBatch-a-1", "waits", False)]
    terminate = {"tags": {"accel:drain": "terminate 5"}}
    assert environment("replace", old=terminate) == [("cluster:AWSBatch-a-1", "ends", False)]
    assert environment("create") == []


@pytest.mark.parametrize(
    ("changed", "fates"),
    [({"maxVcpus": 8}, []), ({"desiredVcpus": 8}, []), ({"instanceTypes": ["g6"]}, ["ends"])],
)
def test_an_update_ends_jobs_only_where_instances_are_new(changed: dict[str, Any], fates: list[str]) -> None:
    old = {"computeResources": {"maxVcpus": 4, "instanceTypes": ["g5"]}}
    new = {"computeResources": {**old["computeResources"], **changed}}
    assert [fate for _, fate, _ in environment("update", old=old, new=new)] == fates


def test_a_queue_takes_its_waiting_jobs_along() -> None:
    queue = "aws:batch/jobQueue:JobQueue"
    assert of("replace", queue, outputs={"arn": "arn:q"}) == [("queue:arn:q", "ends", True)]
    assert of("update", queue, outputs={"arn": "arn:q"}) == []


@pytest.mark.parametrize(
    ("op", "diffs", "fates"),
    [
        ("update", ["autoscaling.totalMaxNodeCount", "nodeConfig.labels.team", "upgradeSettings.maxSurge"], []),
        ("update", ["nodeConfig.imageType"], ["ends"]),
        ("update", ["version"], ["ends"]),
        ("replace", ["nodeConfig.machineType"], ["ends"]),
        ("delete", [], ["ends"]),
    ],
)
def test_a_node_pool(op: str, diffs: list[str], fates: list[str]) -> None:
    found = of(op, POOL, outputs=IN_POOL, diffs=diffs)
    assert [fate for _, fate, _ in found] == fates
    assert {place for place, _, _ in found} <= {"pool:p/us-central1/c/l4-1"}


def test_the_id_of_a_cluster_is_taken_apart() -> None:
    path = "projects/p/locations/us-central1/clusters/c"
    assert of("delete", POOL, old={"cluster": path, "name": "l4-1"})[0][0] == "pool:p/us-central1/c/l4-1"


@pytest.mark.parametrize(
    ("kind", "state", "place"),
    [
        ("gcp:container/cluster:Cluster", {"project": "p", "location": "l", "name": "c"}, "gke:p/l/c"),
        ("gcp:storage/bucket:Bucket", {"name": "b"}, "bucket:b"),
        ("gcp:serviceaccount/account:Account", {"email": "a@p"}, "account:a@p"),
        ("gcp:vertex/aiPersistentResource:AiPersistentResource", {"name": "kept"}, "persistent:kept"),
        ("aws:iam/role:Role", {"arn": "arn:r"}, "role:arn:r"),
    ],
)
def test_what_goes_takes_jobs_along(kind: str, state: dict[str, Any], place: str) -> None:
    assert [found[0] for found in of("delete", kind, outputs=state)] == [place]
    assert of("update", kind, outputs=state) == []


def test_objects_of_a_cluster() -> None:
    queue = {"metadata": {"namespace": "jobs", "name": "gpu"}}
    assert of("delete", "kubernetes:core/v1:Namespace", old={"metadata": {"name": "jobs"}})[0][0] == "namespace:jobs"
    definition = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
    found = of("delete", definition, old={"metadata": {"name": "jobsets.jobset.x-k8s.io"}})
    assert found == [("definition:jobsets.jobset.x-k8s.io", "ends", True)]
    assert of("delete", definition, old={"metadata": {"name": "crontabs.example.com"}}) == []
    found = of("delete", "kubernetes:kueue.x-k8s.io/v1beta1:LocalQueue", old=queue)
    assert found == [("localqueue:jobs/gpu", "loses", True)]


def live(phase: str, *places: str) -> Live:
    return Live("aws-batch:r/1", "job", phase, "gpu", 1, 1.0, frozenset(places))


def threat(place: str, *, queued: bool) -> Threat:
    (change,) = preview(step("delete", "a:b:C", "x")).changes
    return Threat(change, place, "ends", "", queued)


def test_a_job_that_waits_is_hit_by_what_it_waits_in_alone() -> None:
    assert _is_hit(threat("queue:q", queued=True), live("QUEUED", "queue:q"))
    assert not _is_hit(threat("cluster:c", queued=False), live("QUEUED", "cluster:c"))
    assert _is_hit(threat("cluster:c", queued=False), live("RUNNING", "cluster:c"))
    assert not _is_hit(threat("cluster:c", queued=True), live("RUNNING", "cluster:other"))


def test_only_targets_that_can_have_the_place_are_asked() -> None:
    gke = GkeTarget(
        project="p",
        location="l",
        cluster="c",
        endpoint="e",
        ca_certificate="x",
        namespace="jobs",
        queue="gpu",
        jobset=True,
        pools={},
    )
    for place, asked in (("pool:p/l/c/a", True), ("pool:p/l/other/a", False), ("namespace:jobs", True),
                         ("localqueue:jobs/gpu", True), ("namespace:others", False), ("bucket:b", False),
                         ("definition:jobsets.jobset.x-k8s.io", True)):  # fmt: skip
        assert _stands_on(gke, place) is asked, place
    vertex = VertexTarget(project="p", region="r", service_account="a@p", bucket="b", persistent_resource="kept")
    assert ground(vertex) == {"bucket:b", "account:a@p", "persistent:kept"}
    assert not _stands_on(LocalTarget(), "bucket:b")


def test_without_a_threat_nobody_is_asked_and_a_strange_target_is_told() -> None:
    assert hits([], {"targets": {"x": {"kind": "?"}}}).unread == ()
    found = hits([threat("bucket:b", queued=True)], {"targets": {"x": {"kind": "?"}}})
    assert found.hits == ()
    assert "target x" in found.unread[0]


def test_what_is_lost_for_good() -> None:
    table = "aws:dynamodb/table:Table"
    lost = {op: loss(preview(step(op, table, "t")).changes[0]) is not None for op in ("replace", "delete", "update")}
    assert lost == {"replace": True, "delete": True, "update": False}
    assert loss(preview(step("delete", "aws:iam/role:Role", "r")).changes[0]) is None
    assert loss(preview(step("delete", table, "t", flags={"retainOnDelete": True})).changes[0]) is None
