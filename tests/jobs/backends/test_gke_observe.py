"""Status, listing, cancelling and logs, from what a cluster says."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from accel.contract.gke import ASKING_AGAIN
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, NotFound
from jobs.backends.base import JobRef, LogLine, Phase, Status
from jobs.backends.gke import GkeBackend
from jobs.backends.gke import labels as marks
from jobs.backends.gke.logs import logs
from jobs.backends.gke.status import list_jobs, status, statuses
from jobs.backends.gke.submit import cancel, submit
from tests.jobs.backends.gke_cluster import SCOPE, Cluster
from tests.jobs.backends.gke_target import make_request, make_target

CPU: dict[str, Any] = {"cpus": 2, "memory_mib": 4000}
TAKEN = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
_numbers = itertools.count()


def submitted(cluster: Cluster, *, queue: bool = False, jobset: bool = True, **fields: Any) -> JobRef:
    target = make_target(jobset=jobset) if queue else make_target(jobset=jobset, queue=None)
    return submit(make_request(target, f"{next(_numbers)}", **{**CPU, **fields}), cluster.api())


def body(cluster: Cluster, ref: JobRef) -> dict[str, Any]:
    return cluster.objects.get(f"{SCOPE.jobs}/{ref.id}") or cluster.objects[f"{SCOPE.jobsets}/{ref.id}"]


def has(cluster: Cluster, ref: JobRef, **told: Any) -> None:
    body(cluster, ref).setdefault("status", {}).update(told)


def a_pod(cluster: Cluster, ref: JobRef, phase: str, *, index: int | None = None, **told: Any) -> dict[str, Any]:
    number = next(_numbers)
    labels = {marks.OBJECT: ref.id, marks.OWNER: marks.JOBS}
    labels |= {marks.INDEX: str(index)} if index is not None else {}
    metadata = {
        "name": f"{ref.id}-{number}",
        "labels": labels,
        "creationTimestamp": f"2026-01-02T03:{number // 60 % 60:02}:{number % 60:02}Z",
    }
    return cluster.put(SCOPE.core("pods"), {"metadata": metadata, "status": {"phase": phase, **told}})


def ended(code: int, reason: str = "Error", at: str = "2026-01-02T04:00:00Z") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": at}}
    return {"containerStatuses": [{"name": "main", "state": state}]}


def failed(reason: str = "BackoffLimitExceeded", message: str = "reached the limit") -> dict[str, Any]:
    condition = {"type": "Failed", "status": "True", "reason": reason, "message": message}
    return {"conditions": [{**condition, "lastTransitionTime": "2026-01-02T04:00:01Z"}]}


def seen(cluster: Cluster, ref: JobRef) -> Status:
    return status(cluster.api(), SCOPE, ref)


def test_a_job_from_its_queue_to_its_end(cluster: Cluster) -> None:
    ref = submitted(cluster, queue=True)
    assert (seen(cluster, ref).phase, seen(cluster, ref).reason) == (Phase.QUEUED, "waits in queue team-a")
    waits = {"type": "QuotaReserved", "status": "False", "message": "insufficient unused quota for cpu"}
    labels = {"kueue.x-k8s.io/job-uid": body(cluster, ref)["metadata"]["uid"]}
    workload = cluster.put(SCOPE.workloads, {"metadata": {"name": "w", "labels": labels}, "spec": {}})
    workload["status"] = {"conditions": [waits]}
    assert seen(cluster, ref).reason == "insufficient unused quota for cpu"
    body(cluster, ref)["spec"]["suspend"] = False
    has(cluster, ref, startTime="2026-01-02T03:05:00Z", active=1)
    assert (seen(cluster, ref).phase, seen(cluster, ref).reason) == (Phase.STARTING, None)
    unschedulable = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    made = a_pod(cluster, ref, "Pending", conditions=[unschedulable])
    assert (seen(cluster, ref).phase, seen(cluster, ref).reason) == (Phase.STARTING, "0/3 nodes are available")
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    made["status"] = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": waiting}]}
    assert seen(cluster, ref).reason == "ImagePullBackOff: no such image"
    made["status"] = {"phase": "Running"}
    assert seen(cluster, ref).phase is Phase.RUNNING
    made["status"] = {"phase": "Succeeded", **ended(0, "Completed")}
    has(cluster, ref, active=0, succeeded=1, completionTime="2026-01-02T04:00:00Z")
    has(cluster, ref, conditions=[{"type": "Complete", "status": "True"}])
    found = seen(cluster, ref)
    assert (found.phase, found.native, found.exit_code, found.attempts) == (Phase.SUCCEEDED, "Complete", 0, 1)
    assert (found.name, found.target) == ("digits", "gpu")
    assert found.started and found.stopped and (found.stopped - found.started).total_seconds() == 3300


def test_a_job_that_its_queue_suspends_runs_until_its_pods_are_gone(cluster: Cluster) -> None:
    """Kueue preempts by suspending: the pods get their grace period.
    https://kueue.sigs.k8s.io/docs/concepts/preemption/"""
    ref = submitted(cluster, queue=True)
    pod = a_pod(cluster, ref, "Running")
    assert body(cluster, ref)["spec"]["suspend"] is True
    assert (seen(cluster, ref).phase, seen(cluster, ref).native) == (Phase.RUNNING, "Running")
    pod["status"]["phase"] = "Failed"
    assert (seen(cluster, ref).phase, seen(cluster, ref).native) == (Phase.QUEUED, "Suspended")


def test_a_pod_that_is_done_has_run_whatever_the_job_says_yet(cluster: Cluster) -> None:
    ref = submitted(cluster)
    has(cluster, ref, startTime="2026-01-02T03:05:00Z", active=1)
    a_pod(cluster, ref, "Succeeded", **ended(0, "Completed"))
    assert seen(cluster, ref).phase is Phase.RUNNING


def test_a_failure_says_what_the_last_pod_says(cluster: Cluster) -> None:
    ref = submitted(cluster, retries=1)
    a_pod(cluster, ref, "Failed", **ended(1))
    a_pod(cluster, ref, "Failed", **ended(137, "OOMKilled", "2026-01-02T04:30:00Z"))
    has(cluster, ref, failed=2, **failed())
    found = seen(cluster, ref)
    assert found.reason == "BackoffLimitExceeded: reached the limit: OOMKilled"
    assert (found.phase, found.exit_code, found.attempts, found.lost, found.taken) == (Phase.FAILED, 137, 2, 0, None)


def test_lost_attempts_are_counted_beside_those_that_failed(cluster: Cluster) -> None:
    ref = submitted(cluster, accelerator={"type": "a100", "count": 2})
    started = {"startTime": "2026-01-02T03:00:00Z", "conditions": [TAKEN]}
    a_pod(cluster, ref, "Failed", **started, **ended(143))
    a_pod(cluster, ref, "Running")
    has(cluster, ref, active=1)
    found = seen(cluster, ref)
    assert (found.phase, found.attempts, found.lost, found.lost_gpu_hours) == (Phase.RUNNING, 2, 1, 2.0)
    assert found.taken is None


def test_a_job_that_was_taken_away_too_often_may_go_elsewhere(cluster: Cluster) -> None:
    ref = submitted(cluster, lost_retries=0)
    a_pod(cluster, ref, "Failed", conditions=[TAKEN], **ended(143))
    has(cluster, ref, failed=1, **failed("PodFailurePolicy"))
    assert seen(cluster, ref).taken == "its machine was taken away"


def test_tasks_are_counted(cluster: Cluster) -> None:
    ref = submitted(cluster, tasks=10, parallelism=4)
    has(cluster, ref, active=4, ready=3, succeeded=2, failedIndexes="1,3-4", failed=3)
    a_pod(cluster, ref, "Running", index=5)
    found = seen(cluster, ref)
    assert found.tasks == {"Pending": 2, "Running": 3, "Succeeded": 2, "Failed": 3}
    assert found.phase is Phase.RUNNING


def test_a_jobset_counts_its_restarts(cluster: Cluster) -> None:
    ref = submitted(cluster, nodes=2, retries=3)
    a_pod(cluster, ref, "Running", index=0)
    has(cluster, ref, restarts=2)
    assert (seen(cluster, ref).phase, seen(cluster, ref).attempts) == (Phase.RUNNING, 3)
    has(cluster, ref, conditions=[{"type": "Completed", "status": "True"}], terminalState="Completed")
    assert (seen(cluster, ref).phase, seen(cluster, ref).native) == (Phase.SUCCEEDED, "Completed")


def test_a_job_that_is_not_there_and_one_that_cannot_be_seen(cluster: Cluster) -> None:
    cluster.missing.add("jobsets")
    with pytest.raises(NotFound, match="knows no such job"):
        seen(cluster, SCOPE.ref("none"))
    cluster.faults["GET jobs"] = ["500"] * 9
    with pytest.raises(CloudSilent):
        seen(cluster, SCOPE.ref("none"))


def test_a_reference_of_another_place_is_refused(cluster: Cluster) -> None:
    with pytest.raises(BadInput, match=r"is not a job of gke:a\.b\.c\.d"):
        GkeBackend.of_scope("a.b.c.d").status(SCOPE.ref("x"))
    with pytest.raises(BadInput, match="expected gke:<project>"):
        GkeBackend.of_scope("a.b.c")
    assert marks.Scope.parse("example.com:p.us-east1.c.n") == marks.Scope("example.com:p", "us-east1", "c", "n")


@pytest.mark.parametrize("many", [2, 30])
def test_many_are_seen_with_few_calls(cluster: Cluster, many: int) -> None:
    refs = [submitted(cluster) for _ in range(many)]
    cluster.calls.clear()
    known = statuses(cluster.api(), SCOPE, [*refs, SCOPE.ref("none")])
    assert set(known) == set(refs)
    assert sum(cluster.calls.values()) <= max(2 * many + 2, 4)


def test_a_list_is_newest_first_and_has_jobs_of_ours_alone(cluster: Cluster) -> None:
    cluster.put(SCOPE.jobs, {"metadata": {"name": "other"}, "spec": {}})
    first, second, third = submitted(cluster), submitted(cluster, nodes=2), submitted(cluster, queue=True)
    for number, ref in enumerate((first, second, third)):
        body(cluster, ref)["metadata"]["creationTimestamp"] = f"2026-01-02T03:04:0{number}Z"
    has(cluster, first, **failed())
    a_pod(cluster, second, "Running", index=0)

    def names(**asked: Any) -> list[tuple[str, str]]:
        return [
            (each.ref.id, each.phase) for each in list_jobs(cluster.api(), SCOPE, progress=lambda count: None, **asked)
        ]

    assert names(limit=9, ended=True) == [(third.id, "QUEUED"), (second.id, "RUNNING"), (first.id, "FAILED")]
    assert names(limit=9, ended=False) == [(third.id, "QUEUED"), (second.id, "RUNNING")]
    assert names(limit=1, ended=True) == [(third.id, "QUEUED")]
    cluster.missing |= {"jobsets", "workloads"}
    assert names(limit=9, ended=True) == [(third.id, "QUEUED"), (first.id, "FAILED")]
    cluster.forbidden.add("jobs")
    with pytest.raises(CloudRefused):
        names(limit=9, ended=True)


def test_a_job_that_runs_is_cancelled_by_its_deadline(cluster: Cluster) -> None:
    ref = submitted(cluster)
    a_pod(cluster, ref, "Running")
    cancel(cluster.api(), SCOPE, ref, "too slow")
    made = body(cluster, ref)
    assert made["spec"]["activeDeadlineSeconds"] == 1
    assert seen(cluster, ref).reason == "stopping: too slow"
    has(cluster, ref, **failed("DeadlineExceeded"))
    found = seen(cluster, ref)
    assert (found.phase, found.native, found.reason) == (Phase.FAILED, "Cancelled", "cancelled: too slow")
    before = dict(made)
    cancel(cluster.api(), SCOPE, ref, "again")
    assert body(cluster, ref) == before


def test_a_job_that_waits_in_a_queue_is_cancelled_by_leaving_it(cluster: Cluster) -> None:
    ref = submitted(cluster, queue=True)
    labels = {"kueue.x-k8s.io/job-uid": body(cluster, ref)["metadata"]["uid"]}
    workload = cluster.put(SCOPE.workloads, {"metadata": {"name": "w", "labels": labels}, "spec": {"active": True}})
    cancel(cluster.api(), SCOPE, ref, "no longer needed")
    assert workload["spec"] == {"active": False}
    assert (seen(cluster, ref).phase, seen(cluster, ref).reason) == (Phase.FAILED, "cancelled: no longer needed")


def test_a_cancelled_job_is_not_put_back_into_its_queue(cluster: Cluster) -> None:
    ref = submitted(cluster, queue=True)
    labels = {"kueue.x-k8s.io/job-uid": body(cluster, ref)["metadata"]["uid"], ASKING_AGAIN: "yes"}
    workload = cluster.put(SCOPE.workloads, {"metadata": {"name": "w", "labels": labels}, "spec": {"active": False}})
    cancel(cluster.api(), SCOPE, ref, "no longer needed")
    assert workload["spec"] == {"active": False} and ASKING_AGAIN not in workload["metadata"]["labels"]


def test_a_jobset_is_cancelled_by_its_jobs_or_before_it_has_any(cluster: Cluster) -> None:
    early = submitted(cluster, nodes=2)
    cancel(cluster.api(), SCOPE, early, "x")
    assert body(cluster, early)["spec"]["suspend"] is True
    assert seen(cluster, early).phase is Phase.FAILED
    late = submitted(cluster, nodes=2)
    labels = {"jobset.sigs.k8s.io/jobset-name": late.id}
    child = cluster.put(SCOPE.jobs, {"metadata": {"name": f"{late.id}-node-0", "labels": labels}, "spec": {}})
    a_pod(cluster, late, "Running", index=0)
    cancel(cluster.api(), SCOPE, late, "x")
    assert child["spec"] == {"activeDeadlineSeconds": 1}
    assert body(cluster, late)["spec"].get("suspend") is None


def test_cancelling_what_is_not_there(cluster: Cluster) -> None:
    with pytest.raises(NotFound):
        cancel(cluster.api(), SCOPE, SCOPE.ref("none"), "x")


def lines(cluster: Cluster, ref: JobRef, **asked: Any) -> list[tuple[str, str]]:
    found: Iterator[LogLine] = logs(cluster.api(), SCOPE, ref, **{"task": None, "follow": False, **asked})
    return [(line.source, line.text) for line in found]


def stamp(second: int, nano: int = 0) -> str:
    return f"2026-01-02T03:00:{second:02}.{nano:09}Z"


def test_attempts_and_tasks_stand_side_by_side_in_order(cluster: Cluster) -> None:
    ref = submitted(cluster, tasks=2)
    pods = [a_pod(cluster, ref, "Failed", index=0), a_pod(cluster, ref, "Succeeded", index=0)]
    pods.append(a_pod(cluster, ref, "Succeeded", index=1))
    texts = ([stamp(1) + " a"], [stamp(5) + " c", stamp(6) + " "], [stamp(3) + " b"])
    cluster.logs = {pod["metadata"]["name"]: list(text) for pod, text in zip(pods, texts, strict=True)}
    assert lines(cluster, ref) == [
        ("task 0 attempt 1", "a"),
        ("task 1", "b"),
        ("task 0 attempt 2", "c"),
        ("task 0 attempt 2", ""),
    ]
    assert lines(cluster, ref, task=1) == [("", "b")]
    with pytest.raises(BadInput, match="has tasks 0 to 1, not 2"):
        lines(cluster, ref, task=2)
    with pytest.raises(BadInput, match="has no tasks, not 0"):
        lines(cluster, submitted(cluster), task=0)


def test_a_pod_without_a_log_yet_has_no_lines(cluster: Cluster) -> None:
    ref = submitted(cluster)
    a_pod(cluster, ref, "Pending")
    assert lines(cluster, ref) == []


def test_a_followed_log_has_each_line_once_whatever_breaks(cluster: Cluster) -> None:
    """Ten lines of one second, more of the same time stamp, a fault between, and a pod that takes the first's place."""
    ref = submitted(cluster)
    first = a_pod(cluster, ref, "Running")
    name = first["metadata"]["name"]
    cluster.logs[name] = [f"{stamp(1, number)} {number}" for number in range(10)]
    cluster.logs[name] += [f"{stamp(1, 9)} twin", f"{stamp(1, 9)} twin"]
    read = logs(cluster.api(), SCOPE, ref, task=None, follow=True)
    texts = [next(read).text for _ in range(12)]
    cluster.faults["GET pods"] = ["500", "reset", "500", "reset", "hang"]
    cluster.logs[name] += [f"{stamp(1, 9)} twin", f"{stamp(1, 10)} 10", f"{stamp(4)} last of it"]
    texts += [next(read).text for _ in range(3)]
    first["status"]["phase"] = "Failed"
    second = a_pod(cluster, ref, "Succeeded")["metadata"]["name"]
    cluster.logs[second] = [f"{stamp(9)} again"]
    has(cluster, ref, conditions=[{"type": "Complete", "status": "True"}])
    rest = list(read)
    texts += [line.text for line in rest]
    assert texts == [*map(str, range(10)), "twin", "twin", "twin", "10", "last of it", "again"]
    assert rest[-1].source == "attempt 2"


def test_the_last_lines_of_pods_are_asked_for_from_their_end(cluster: Cluster) -> None:
    ref = submitted(cluster, tasks=2)
    pods = [a_pod(cluster, ref, "Running", index=n)["metadata"]["name"] for n in (0, 1)]
    for n, name in enumerate(pods):
        cluster.logs[name] = [f"{stamp(number, n)} {n}.{number}" for number in range(50)]
    assert lines(cluster, ref, tail=3) == [("task 1", "1.48"), ("task 0", "0.49"), ("task 1", "1.49")]
    assert lines(cluster, ref, tail=2, task=0) == [("", "0.48"), ("", "0.49")]
    read = logs(cluster.api(), SCOPE, ref, task=None, follow=True, tail=2)
    texts = [next(read).text for _ in range(2)]
    cluster.faults["GET pods"] = ["500", "reset"]
    cluster.logs[pods[0]] += [f"{stamp(50)} 0.50"]
    texts += [next(read).text]
    cluster.logs[pods[1]] += [f"{stamp(51)} 1.51"]
    for name in pods:
        cluster.objects[f"/api/v1/namespaces/team-a/pods/{name}"]["status"]["phase"] = "Succeeded"
    has(cluster, ref, conditions=[{"type": "Complete", "status": "True"}])
    assert [*texts, *(line.text for line in read)] == ["0.49", "1.49", "0.50", "1.51"]


def test_a_followed_log_gives_up_when_nothing_is_seen_for_long(cluster: Cluster) -> None:
    ref = submitted(cluster)
    name = a_pod(cluster, ref, "Running")["metadata"]["name"]
    cluster.logs[name] = [f"{stamp(1)} a"]
    read = logs(cluster.api(), SCOPE, ref, task=None, follow=True)
    assert next(read).text == "a"
    cluster.faults["GET pods"] = ["500"] * 10_000
    with pytest.raises(CloudSilent):
        list(read)
