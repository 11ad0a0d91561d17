"""What backends remember of a job's attempts."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from jobs.backends.aws_batch import AwsBatchBackend
from jobs.backends.aws_batch.status import of_job
from jobs.backends.base import Attempts
from jobs.backends.gke.status import attempts as of_pods
from jobs.backends.gke.submit import submit
from jobs.backends.local import LocalBackend
from jobs.backends.vm.status import attempts as of_record
from tests.jobs.backends.gke_cluster import SCOPE, Cluster
from tests.jobs.backends.gke_target import make_request as gke_request
from tests.jobs.backends.gke_target import make_target as gke_target
from tests.jobs.backends.google_batch_cloud import Cloud
from tests.jobs.backends.test_gke_observe import CPU, TAKEN, a_pod, ended, has
from tests.jobs.backends.tpu_target import make_request, make_target
from tests.jobs.backends.vm_records import make_record

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.google_batch_cloud"]
_numbers = itertools.count()


def hour(number: int) -> datetime:
    return datetime(2026, 1, 2, number, tzinfo=UTC)


def ms(number: int) -> int:
    return int(hour(number).timestamp() * 1000)


def test_aws_batch_tells_of_those_that_ended_and_the_one_that_runs() -> None:
    lost: dict[str, Any] = {
        "container": {}, "statusReason": "Host EC2 (instance i-0) terminated.", "startedAt": ms(4), "stoppedAt": ms(5),
    }  # fmt: skip
    job = {"jobId": "a", "status": "RUNNING", "createdAt": ms(3), "startedAt": ms(6), "attempts": [lost]}
    first, second = of_job(job, None)
    assert (first.created, first.started, first.stopped, first.lost, first.exit_code) == (
        hour(3), hour(4), hour(5), True, None
    )  # fmt: skip
    assert (second.number, second.created, second.started, second.stopped) == (2, hour(5), hour(6), None)
    (only,) = of_job({**job, "status": "FAILED"}, 7)
    assert (only.place, only.reason) == (7, "Host EC2 (instance i-0) terminated.")
    (waits,) = of_job({"jobId": "b", "status": "RUNNABLE", "createdAt": ms(3), "startedAt": 0, "attempts": []}, None)
    assert (waits.created, waits.started) == (hour(3), None)


def test_a_reclaimed_task_of_google_batch_on_the_sandbox(batch_cloud: Cloud) -> None:
    fields = {"image": None, "command": [], "google_batch": {"runnables": [{"script": "sleep 600"}]}}
    backend = batch_cloud.backend()
    assert isinstance(backend, Attempts)
    ref = backend.submit(batch_cloud.request("lost", **fields, spot=True, lost_retries=1))
    batch_cloud.becomes(ref, lambda status: status.attempts == 1)
    batch_cloud.preempt(ref.id)
    batch_cloud.becomes(ref, lambda status: status.attempts == 2)
    first, second = backend.attempts(ref)
    assert (first.number, first.lost, first.exit_code) == (1, True, 50001)
    assert first.created and first.started and first.stopped
    assert first.created <= first.started <= first.stopped and second.created == first.stopped
    assert (second.number, second.lost, second.stopped) == (2, False, None)
    backend.cancel(ref, "enough")


def test_gke_tells_what_its_pods_do(cluster: Cluster) -> None:
    ref = submit(gke_request(gke_target(queue=None), f"attempts-{next(_numbers)}", **CPU), cluster.api())
    found = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-02T03:30:00Z"}
    a_pod(cluster, ref, "Failed", conditions=[TAKEN, found], **ended(143))
    running = {"containerStatuses": [{"name": "main", "state": {"running": {"startedAt": "2026-01-02T05:00:00Z"}}}]}
    a_pod(cluster, ref, "Running", **running)
    first, second = of_pods(cluster.api(), SCOPE, ref)
    assert (first.lost, first.exit_code, first.stopped, first.place) == (True, 143, hour(4), None)
    assert first.placed == datetime(2026, 1, 2, 3, 30, tzinfo=UTC)
    assert (second.number, second.started, second.stopped, second.lost) == (2, hour(5), None, False)


def an_event(cluster: Cluster, kind: str, name: str, reason: str, message: str, minute: int) -> None:
    metadata = {"name": f"event-{next(_numbers)}"}
    about = {"kind": kind, "name": name}
    told = {"reason": reason, "message": message, "eventTime": f"2030-01-02T03:{minute:02}:00.123456Z"}
    cluster.put(SCOPE.core("events"), {"metadata": metadata, "involvedObject": about, **told})


def minute(number: int) -> datetime:
    return datetime(2030, 1, 2, 3, number, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    "words, code",
    [
        ("Pod jobs/{} has condition DisruptionTarget matching FailJob rule at index 0", None),
        ("Container main for pod jobs/{} failed with exit code 143 matching FailJob rule at index 1", 143),
    ],
)
def test_gke_tells_of_pods_that_are_gone_while_events_do(cluster: Cluster, words: str, code: int | None) -> None:
    """All nodes of a JobSet started again, since one lost its machine."""
    ref = submit(gke_request(gke_target(queue=None), f"gone-{next(_numbers)}", **CPU, nodes=2), cluster.api())
    owner = f"{ref.id}-node-0"
    for node, name in enumerate((f"{owner}-0-abcde", f"{owner}-1-fghij")):
        an_event(cluster, "Job", owner, "SuccessfulCreate", f"Created pod: {name}", 1)
        an_event(cluster, "Pod", name, "Scheduled", "Successfully assigned", 2 + node)
        an_event(cluster, "Pod", name, "Started", "Started container main", 4)
    an_event(cluster, "Job", owner, "SuccessfulDelete", f"Deleted pod: {owner}-0-abcde", 10)
    taken = words.format(f"{owner}-1-fghij")
    an_event(cluster, "Job", owner, "PodFailurePolicy", taken, 11)
    for node in (0, 1):
        made = a_pod(cluster, ref, "Running", index=node)
        made["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] = "4"
        an_event(cluster, "Job", owner, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}", 12)
    has(cluster, ref, restarts=4)
    found = of_pods(cluster.api(), SCOPE, ref)
    assert [(each.place, each.number, each.lost) for each in found] == [
        (0, 4, False), (0, 5, False), (1, 4, True), (1, 5, False)
    ]  # fmt: skip
    first, _, third, _ = found
    assert (first.created, first.placed, first.started, first.stopped) == tuple(map(minute, (1, 2, 4, 10)))
    assert (third.placed, third.stopped, third.exit_code) == (minute(3), minute(11), code)
    assert first.reason == "the job started again on all nodes" and third.reason == taken
    cluster.forbidden.add("events")
    assert [(each.place, each.number) for each in of_pods(cluster.api(), SCOPE, ref)] == [(0, 5), (1, 5)]


def test_a_pod_that_went_without_a_word_went_with_its_node(cluster: Cluster) -> None:
    ref = submit(gke_request(gke_target(queue=None), f"gone-{next(_numbers)}", **CPU), cluster.api())
    an_event(cluster, "Job", ref.id, "SuccessfulCreate", f"Created pod: {ref.id}-abcde", 1)
    an_event(cluster, "Pod", f"{ref.id}-abcde", "Started", "Started container main", 4)
    made = a_pod(cluster, ref, "Running")
    made["metadata"]["creationTimestamp"] = "2030-01-02T03:30:00Z"
    first, second = of_pods(cluster.api(), SCOPE, ref)
    assert (first.number, first.place, first.lost, first.started) == (1, None, True, minute(4))
    assert first.stopped == second.created == datetime(2030, 1, 2, 3, 30, tzinfo=UTC)
    assert (second.number, second.lost) == (2, False)


def test_machines_of_their_own_tell_what_the_record_has() -> None:
    record = make_record(
        make_request(make_target(), "x"), made="2026-01-02T01:00:00+00:00", started="2026-01-02T02:00:00+00:00",
        ended="2026-01-02T03:00:00+00:00", outcome="lost", reason="preempted",
    )  # fmt: skip
    last = replace(record.last, number=1, ended=None, outcome="", reason="", exit_codes={})
    first, second = of_record(replace(record, attempts=(record.last, last)))
    assert (first.created, first.started, first.stopped, first.lost) == (hour(1), hour(2), hour(3), True)
    assert first.reason and first.reason.endswith("lost: preempted")
    assert (second.number, second.stopped, second.lost) == (2, None, False)


def test_who_remembers() -> None:
    assert isinstance(AwsBatchBackend.of_scope("us-east-1"), Attempts)
    assert isinstance(LocalBackend.of_scope(""), Attempts)
