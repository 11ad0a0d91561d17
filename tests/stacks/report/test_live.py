"""What is read of the clouds' answers about jobs."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accel.contract.targets import AwsBatchEnvironment, AwsBatchTarget
from accel.diagnostics.errors import CloudRefused, NotFound
from jobs.backends.base import JobRef, Phase, Status
from jobs.client.live.aws import _live
from jobs.client.live.google import _gpus, _looked, _of_pool
from jobs.client.live.job import Live
from stacks.operations.report.threats import Hits, Threat, hits

from .steps import preview, step

# pyright: reportPrivateUsage=false

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SINCE = int((NOW - timedelta(hours=2)).timestamp() * 1000)
INSTANCE = "arn:aws:ecs:us-east-1:1:container-instance/AWSBatch-a/0123"
REGION, QUEUE = "us-east-1", "arn:aws:batch:us-east-1:1:job-queue/gpu"
OTHER = f"{QUEUE}-other"


def gpus(count: int) -> dict[str, Any]:
    return {"resourceRequirements": [{"type": "GPU", "value": str(count)}, {"type": "VCPU", "value": "8"}]}


@pytest.mark.parametrize(
    "detail",
    [
        {"container": {**gpus(3), "containerInstanceArn": INSTANCE}},
        {"ecsProperties": {"taskProperties": [
            {"containerInstanceArn": INSTANCE, "containers": [gpus(2), gpus(1), {}]}]}},
    ],
)  # fmt: skip
def test_a_job_of_aws_batch(detail: dict[str, Any]) -> None:
    summary = {"jobId": "j", "jobName": "train", "status": "RUNNING"}
    found = _live(REGION, summary, QUEUE, [{**detail, "startedAt": SINCE}], None, NOW)
    assert (found.accelerators, found.hours, found.target) == (3, 6.0, "queue gpu")
    assert found.places == {f"queue:{QUEUE}", "cluster:AWSBatch-a"}


def test_one_that_waits_holds_nothing() -> None:
    waits = {"jobId": "j", "jobName": "train", "status": "RUNNABLE"}
    found = _live(REGION, waits, QUEUE, [], None, NOW)
    assert (found.accelerators, found.hours, found.waits) == (0, 0.0, True)


def hit(monkeypatch: pytest.MonkeyPatch, *places: str, fails: bool = False) -> tuple[Hits, list[Any]]:
    """Of a stack with one queue, in a region with a job in another."""
    spot = AwsBatchEnvironment(name="a", arn="a", capacity="spot", instance_types=["g5"], max_vcpus=8, disk_gib=100)
    target = AwsBatchTarget(
        region=REGION,
        queue_arn=QUEUE,
        environments=[spot],
        definitions={},
        definition_prefix="p",
        log_group="l",
        job_role_arn="arn:job",
        execution_role_arn="arn:run",
    )
    asked: list[Any] = []

    def jobs_of(region: str, queues: Any, own: Any, now: datetime) -> Iterator[Live]:
        asked.append(queues)
        yield Live("aws-batch:r/1", "train", "QUEUED", "gpu", 0, 0.0, frozenset({f"queue:{OTHER}"}))
        if fails:
            raise CloudRefused("may not list jobs")

    monkeypatch.setattr("jobs.client.live.aws.jobs_of", jobs_of)
    (change,) = preview(step("delete", "a:b:C", "x")).changes
    threats = [Threat(change, place, "ends", "", True, REGION) for place in places]
    outputs = {"targets": {"gpu": target.model_dump(mode="json", by_alias=True)}}
    return hits(threats, outputs, NOW), asked


def test_a_queue_that_is_no_target_is_asked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found, asked = hit(monkeypatch, f"queue:{OTHER}")
    assert asked == [{QUEUE, OTHER}]
    assert [each.job.name for each in found.hits] == ["train"]


def test_an_environment_may_run_jobs_of_any_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hit(monkeypatch, f"queue:{OTHER}", "cluster:AWSBatch-a")[1] == [None]


def test_what_cannot_be_asked_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = hit(monkeypatch, f"queue:{OTHER}", fails=True)
    assert (found.hits, found.unread) == ((), ("AWS Batch in us-east-1: may not list jobs",))


class Listed:
    """Two jobs, of which one is forgotten before it is looked at."""

    def list(self, *, limit: int, ended: bool, progress: Any = None) -> Iterator[Status]:
        for name in ("here", "gone"):
            yield Status(JobRef("vertex", "p.r", name), name, Phase.RUNNING, "RUNNING")


def test_a_job_that_goes_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(name: str) -> str:
        if name == "gone":
            raise NotFound("no such job")
        return name

    monkeypatch.setattr("jobs.client.live.google.of_target", lambda *_: Listed())
    looked = _looked("vertex", None, look)
    assert [(status.name, told) for status, told in looked] == [("here", "here")]


@pytest.mark.parametrize(
    ("machine", "held"),
    [
        ({"machineType": "a2-highgpu-2g", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 2}, (4, "GPU")),
        ({"machineType": "ct5lp-hightpu-4t", "tpuTopology": "4x4"}, (32, "TPU chip")),
        ({"machineType": "cloud-tpu", "acceleratorType": "TPU_V3", "acceleratorCount": 8}, (16, "TPU core")),
        ({"machineType": "n1-standard-4"}, (0, "GPU")),
    ],
)
def test_a_pool_of_vertex(machine: dict[str, Any], held: tuple[int, str]) -> None:
    assert _of_pool({"machineSpec": machine, "replicaCount": "2"}) == held


def test_a_machine_that_only_its_template_knows() -> None:
    assert _gpus({}) is None
    assert _gpus({"machineType": "g2-standard-24"}) == 2
    assert _gpus({"machineType": "n1-standard-8", "accelerators": [{"type": "nvidia-tesla-t4", "count": "4"}]}) == 4
