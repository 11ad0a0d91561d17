"""What a list of AWS Batch's jobs tells, which its ListJobs alone does not: arrays, attempts, GPUs and owners."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from jobs.backends.base import Phase, Status
from tests.jobs.backends.test_aws_batch_observe import FakeBatch, backend_of, credentials, detail

__all__ = ["credentials"]

GPUS = {"resourceRequirements": [{"type": "GPU", "value": "4"}]}


def array(**counts: int) -> dict[str, Any]:
    return detail("array", status="PENDING", arrayProperties={"size": 10, "statusSummary": counts}, container=GPUS)


def listed(batch: Any, *, limit: int = 50, ended: bool = False) -> list[Status]:
    return list(backend_of(batch).list(limit=limit, ended=ended))


def test_an_array_that_runs_is_listed_so_with_its_tasks() -> None:
    batch = FakeBatch(array(RUNNABLE=7, RUNNING=2, SUCCEEDED=1))
    (found,) = listed(batch)
    assert (found.phase, found.native) == (Phase.RUNNING, "PENDING")
    assert found.tasks == {"RUNNABLE": 7, "RUNNING": 2, "SUCCEEDED": 1} and found.gpus == 4
    assert (found.attempts, found.lost) == (None, None), "they are those of its tasks"
    assert batch.calls["describe"] == 1


def test_attempts_and_owners_are_told() -> None:
    lost = {"statusReason": "Host EC2 (instance i-1) terminated.", "container": {"logStreamName": "a"}}
    tried = detail(attempts=[lost], container={"logStreamName": "b", **GPUS}, tags={"team": "vision", "accel:key": "k"})
    (found,) = listed(FakeBatch(tried))
    assert (found.attempts, found.lost, found.gpus, found.owner) == (2, 1, 4, "vision")
    nodes = {"numNodes": 3, "nodeRangeProperties": [{"targetNodes": "0:", "container": GPUS}]}
    (several,) = listed(FakeBatch(detail(nodeProperties=nodes)))
    assert several.gpus == 12


def test_what_may_not_be_described_is_not_known() -> None:
    class Closed(FakeBatch):
        def describe_jobs(self, jobs: list[str]) -> dict[str, Any]:
            error: Any = {"Error": {"Code": "AccessDeniedException"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
            raise ClientError(error, "DescribeJobs")

    (found,) = listed(Closed(array(RUNNING=10)))
    assert (found.phase, found.tasks, found.attempts, found.lost, found.gpus) == (Phase.QUEUED, {}, None, None, None)


@pytest.mark.parametrize(("count", "calls"), [(50, 1), (250, 3), (2500, 10)])
def test_a_list_is_described_by_the_hundred_and_not_without_end(count: int, calls: int) -> None:
    batch = FakeBatch(*(detail(f"{number}", status="SUCCEEDED", createdAt=number + 1) for number in range(count)))
    found = listed(batch, limit=10_000, ended=True)
    assert len(found) == count and batch.calls["describe"] == calls
    assert [each.attempts for each in found[1000:]] == [None] * max(0, count - 1000)


def test_who_takes_the_newest_pays_for_the_newest() -> None:
    batch = FakeBatch(*(detail(f"{number}", status="SUCCEEDED", createdAt=number + 1) for number in range(500)))
    every = backend_of(batch).list(limit=1000, ended=True)
    newest = [next(every).ref.id for _ in range(60)]
    assert newest[:2] == ["499", "498"] and batch.calls["describe"] == 1


def test_a_job_that_has_ended_since_is_left_out() -> None:
    class Late(FakeBatch):
        def describe_jobs(self, jobs: list[str]) -> dict[str, Any]:
            return {"jobs": [{**job, "status": "SUCCEEDED"} for job in super().describe_jobs(jobs)["jobs"]]}

    assert listed(Late(detail())) == []
