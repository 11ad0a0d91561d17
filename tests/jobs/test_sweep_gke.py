"""The tasks of a sweep in a cluster: the state of each, and some of them again."""

from __future__ import annotations

from typing import Any

import pytest

from accel.diagnostics.errors import BadInput
from jobs.backends.base import JobRef, Phase
from jobs.backends.gke.request import MIN_PARALLELISM
from jobs.backends.gke.status import tasks
from jobs.backends.gke.submit import resubmit_request, submit
from jobs.model import sweep_tasks
from tests.jobs.backends.gke_cluster import SCOPE, Cluster
from tests.jobs.backends.gke_target import make_request
from tests.jobs.backends.test_gke_observe import a_pod, ended

SWEEP = {"grid": {"A": ["x", "$(y)", "z"], "B": ["1", "2"]}}


def submitted(cluster: Cluster, **fields: Any) -> JobRef:
    return submit(make_request(cpus=1, memory_mib=1000, sweep=SWEEP, **fields), cluster.api())


def told(cluster: Cluster, ref: JobRef, **status: Any) -> None:
    cluster.objects[f"{SCOPE.jobs}/{ref.id}"]["status"] = status


def test_each_index_has_its_state(cluster: Cluster) -> None:
    ref = submitted(cluster)
    assert {each.phase for each in tasks(cluster.api(), SCOPE, ref)} == {Phase.QUEUED}
    a_pod(cluster, ref, "Succeeded", index=0, **ended(0, "Completed"))
    a_pod(cluster, ref, "Failed", index=1, **ended(3))
    a_pod(cluster, ref, "Failed", index=1, **ended(4))
    a_pod(cluster, ref, "Failed", index=2, **ended(5))
    a_pod(cluster, ref, "Running", index=3)
    lost = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    a_pod(cluster, ref, "Failed", index=4, **ended(143), **lost)
    told(cluster, ref, completedIndexes="0", failedIndexes="1,4", active=2)
    found = tasks(cluster.api(), SCOPE, ref)
    assert [(each.phase, each.attempts, each.exit_code) for each in found] == [
        (Phase.SUCCEEDED, 1, 0), (Phase.FAILED, 2, 4), (Phase.QUEUED, 1, None), (Phase.RUNNING, 1, None),
        (Phase.FAILED, 1, 143), (Phase.QUEUED, 0, None),
    ]  # fmt: skip
    assert found[4].reason == "its machine was taken away"

    over = {"type": "Failed", "status": "True", "reason": "FailedIndexes", "message": "some"}
    told(cluster, ref, completedIndexes="0", failedIndexes="1,4", conditions=[over])
    assert [each.phase for each in tasks(cluster.api(), SCOPE, ref)][1:] == [Phase.FAILED] * 5


@pytest.mark.parametrize("wanted, least", [([1, 4], "1"), ([3], None)])
def test_some_indexes_again(cluster: Cluster, wanted: list[int], least: str | None) -> None:
    ref = submitted(cluster)
    request = resubmit_request(cluster.api(), SCOPE, ref, "e" * 64, wanted)
    (made,) = request.body["objects"]
    assert (made["spec"]["completions"], made["spec"]["parallelism"]) == (len(wanted), len(wanted))
    assert made["metadata"]["annotations"].get(MIN_PARALLELISM) == least
    found = sweep_tasks.find_sweep(request.body)
    assert found and list(found.places) == wanted and found.first == str(ref)
    second = submit(request, cluster.api())
    third = resubmit_request(cluster.api(), SCOPE, second, "f" * 64, [len(wanted) - 1])
    last = sweep_tasks.find_sweep(third.body)
    assert last and list(last.places) == wanted[-1:] and last.first == str(second)
    with pytest.raises(BadInput, match=f"has no task {len(wanted)}; it has 0 to {len(wanted) - 1}"):
        resubmit_request(cluster.api(), SCOPE, second, "f" * 64, [len(wanted)])


def test_tasks_without_a_sweep_do_not_run_apart(cluster: Cluster) -> None:
    ref = submit(make_request(cpus=1, memory_mib=1000, tasks=3), cluster.api())
    with pytest.raises(BadInput, match="is no sweep, whose tasks could run apart"):
        resubmit_request(cluster.api(), SCOPE, ref, "e" * 64, [1])
