"""One key makes one job, whatever the network does, and however many clients there are."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest

from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, JobsError, NoCredentials, NotFound
from jobs.backends.base import JobRef
from jobs.backends.gke import labels
from jobs.backends.gke.submit import resubmit_request, submit
from tests.jobs.backends.gke_cluster import SCOPE, Cluster
from tests.jobs.backends.gke_target import make_request, make_target
from tests.support.soak import sampled

LOST = ["reset", "hang", "429", "500", "502", "503", "504"]
ACCEPTED = ["accept+reset", "accept+hang", "accept+500", "accept+garbage"]
DEFINITE = {"400": CloudRefused, "401": NoCredentials, "403": CloudRefused, "404": NotFound, "422": CloudRefused}
CPU: dict[str, Any] = {"cpus": 2, "memory_mib": 4000}


def jobs_of(cluster: Cluster) -> list[str]:
    return [path.rpartition("/")[2] for path in cluster.objects if "/jobs/" in path or "/jobsets/" in path]


@pytest.mark.parametrize(
    ("times", "fault"),
    sampled(
        product([1, 3, 9], [*LOST, *ACCEPTED]),
        [
            *product([1], ["429", "503", "accept+garbage"]),
            *product([3], ["reset", "hang", "accept+reset"]),
            *product([9], ["504", "accept+500"]),
        ],
    ),
)
def test_faults_of_the_create(cluster: Cluster, fault: str, times: int) -> None:
    request = make_request(text=f"{fault} {times}", **CPU)
    cluster.faults["POST jobs"] = [fault] * times
    api = cluster.api()
    try:
        first: JobRef | JobsError = submit(request, api)
    except JobsError as error:
        first = error
    if times < 4 or fault.startswith("accept"):
        assert isinstance(first, JobRef), first
    else:
        assert isinstance(first, CloudSilent) and "again" in str(first.hint)
    cluster.faults.clear()
    ref = submit(request, api)
    assert jobs_of(cluster) == [ref.id] == [request.name]
    assert first == ref or isinstance(first, JobsError)


def test_whether_the_job_was_there_is_told(cluster: Cluster) -> None:
    request = make_request(**CPU)
    assert [submit(request, cluster.api()).there for _ in range(2)] == [False, True]
    cluster.faults["POST jobs"] = ["accept+reset"]
    assert not submit(make_request(text="lost", **CPU), cluster.api()).there, "only the answer was lost"


@pytest.mark.parametrize("fault", DEFINITE)
def test_a_refusal_is_final_and_leaves_nothing(cluster: Cluster, fault: str) -> None:
    target = make_target(queue=None, jobset=False)
    request = make_request(target, accelerator={"type": "a100"}, nodes=2)
    cluster.faults["POST jobs"] = [fault] * 2
    with pytest.raises(DEFINITE[fault]):
        submit(request, cluster.api())
    assert cluster.objects == {}
    assert cluster.calls["POST jobs"] == (2 if fault == "401" else 1)


@pytest.mark.parametrize(
    ("call", "fault"),
    sampled(
        product(["POST services", "GET jobs", "PATCH services", "GET services"], [*LOST, *ACCEPTED]),
        [
            *product(["POST services", "GET jobs"], ["reset", "accept+reset"]),
            ("GET jobs", "hang"),
            *product(["PATCH services", "GET services"], ["429", "accept+garbage"]),
        ],
    ),
)
def test_faults_around_the_create(cluster: Cluster, fault: str, call: str) -> None:
    """A job of nodes has a Service; the answer to its create is lost, so that it is looked for too."""
    request = make_request(make_target(queue=None, jobset=False), accelerator={"type": "a100"}, nodes=2)
    cluster.faults = {call: [fault] * 2, "POST jobs": ["accept+reset"]}
    ref = submit(request, cluster.api())
    assert jobs_of(cluster) == [ref.id]
    service = cluster.objects[f"{SCOPE.core('services')}/{ref.id}"]
    job = cluster.objects[f"{SCOPE.jobs}/{ref.id}"]
    (owner,) = service["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Job", job["metadata"]["uid"])


def test_a_submit_that_died_between_its_objects_goes_on(cluster: Cluster) -> None:
    request = make_request(make_target(queue=None, jobset=False), accelerator={"type": "a100"}, nodes=2)
    cluster.faults["PATCH services"] = ["reset"] * 9
    with pytest.raises(CloudSilent):
        submit(request, cluster.api())
    cluster.faults.clear()
    submit(request, cluster.api())
    assert cluster.objects[f"{SCOPE.core('services')}/{request.name}"]["metadata"]["ownerReferences"]


def test_the_same_key_for_another_job_is_refused_and_leaves_the_first_alone(cluster: Cluster) -> None:
    target = make_target(queue=None, jobset=False)
    first = make_request(target, accelerator={"type": "a100"}, nodes=2)
    submit(first, cluster.api())
    before = dict(cluster.objects)
    with pytest.raises(BadInput, match="it was used for another request"):
        submit(make_request(target, accelerator={"type": "a100"}, nodes=2, env={"A": "1"}), cluster.api())
    assert cluster.objects == before


def test_many_clients_of_one_key_make_one_job(cluster: Cluster) -> None:
    request = make_request(**CPU)
    with ThreadPoolExecutor(16) as pool:
        refs = set(pool.map(lambda _: submit(request, cluster.api()), range(32)))
    assert len(refs) == 1 and jobs_of(cluster) == [request.name]


def test_a_job_that_is_being_deleted_is_not_taken_for_the_new_one(cluster: Cluster) -> None:
    request = make_request(**CPU)
    submit(request, cluster.api())
    cluster.objects[f"{SCOPE.jobs}/{request.name}"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    with pytest.raises(CloudSilent, match="is being deleted"):
        submit(request, cluster.api())


def test_a_cluster_without_jobset_says_so(cluster: Cluster) -> None:
    cluster.missing.add("jobsets")
    with pytest.raises(NotFound, match="create jobsets team-a: the server could not find"):
        submit(make_request(accelerator={"type": "a100"}, nodes=2), cluster.api())


@pytest.mark.parametrize("jobset", [True, False])
def test_again_is_the_same_job_under_another_name(cluster: Cluster, jobset: bool) -> None:
    target = make_target(jobset=jobset)
    first = make_request(target, accelerator={"type": "a100"}, nodes=2, env={"A": "1"})
    ref = submit(first, cluster.api())
    second = resubmit_request(cluster.api(), SCOPE, ref, "e" * 64)
    assert second.name == "digits-eeeeeeeeeeee" and second.target == "gpu"
    assert ref.id not in str(second.body)
    annotations = second.body["objects"][-1]["metadata"]["annotations"]
    assert annotations[labels.KEY] == "e" * 64
    assert annotations[labels.SPEC] != first.body["objects"][-1]["metadata"]["annotations"][labels.SPEC]
    renamed = str(first.body).replace(ref.id, second.name)
    for name in (labels.KEY, labels.SPEC):
        old = first.body["objects"][-1]["metadata"]["annotations"][name]
        renamed = renamed.replace(old, annotations[name])
    assert eval(renamed) == second.body  # noqa: S307 - the text of our own values
    assert submit(second, cluster.api()).id == second.name
    assert resubmit_request(cluster.api(), SCOPE, ref, "e" * 64) == second
    third = resubmit_request(cluster.api(), SCOPE, SCOPE.ref(second.name), "d" * 64)
    assert third.name == "digits-dddddddddddd" and second.name not in str(third.body)


def test_what_was_not_submitted_by_us_is_not_run_again(cluster: Cluster) -> None:
    cluster.put(SCOPE.jobs, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {}})
    with pytest.raises(BadInput, match="was not submitted by accel"):
        resubmit_request(cluster.api(), SCOPE, SCOPE.ref("x"), "e" * 64)
