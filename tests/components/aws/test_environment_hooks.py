"""What the hooks of compute environments do, without a cloud."""

from typing import Any

import pulumi
import pytest
from botocore.exceptions import ClientError

import components.aws.draining as draining
import components.aws.environment_hooks as environment_hooks
from components.aws.draining import DrainError, Draining, DrainSpec
from tests.support import memory

NAME = "spot-1a2b3c4"
CLUSTER = f"AWSBatch-{NAME}-0001"


class Pages:
    """A paginator over one page."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def paginate(self, **asked: str) -> list[Any]:
        return [self.page(**asked) if callable(self.page) else self.page]


class Batch:
    """Batch with one queue: as often as `named`, it names the environment; then as often as `looks`, a task runs."""

    def __init__(self, named: int = 0, looks: int = 0) -> None:
        self.named, self.looks = named, looks
        self.calls: list[tuple[str, Any]] = []

    def describe_compute_environments(self, computeEnvironments: list[str]) -> Any:  # noqa: N803
        arn = f"arn:aws:ecs:us-east-1:408219650273:cluster/{CLUSTER}"
        return {"computeEnvironments": [{"status": "VALID", "state": "ENABLED", "ecsClusterArn": arn}]}

    def update_compute_environment(self, **asked: Any) -> None:
        self.calls.append(("update", asked))

    def terminate_job(self, jobId: str, reason: str) -> None:  # noqa: N803
        self.calls.append(("terminate", jobId))

    def describe_jobs(self, jobs: list[str]) -> Any:
        assert len(jobs) <= 100
        return {"jobs": [{"jobId": job, **self._container(job)} for job in jobs]}

    def _container(self, job: str) -> dict[str, Any]:
        kind, _, index = job.partition(":")
        cluster = {"on": CLUSTER, "off": "AWSBatch-other"}[kind]
        return {"container": {"containerInstanceArn": f"arn:x:container-instance/{cluster}/1"}} if index else {}

    def get_paginator(self, operation: str) -> Pages:
        if operation == "list_jobs":
            return Pages(self._jobs)
        self.named -= 1
        order = [{"order": 1, "computeEnvironment": f"arn:x/{NAME}" if self.named >= 0 else "arn:x/other"}]
        return Pages(
            {"jobQueues": [{"jobQueueName": "gpu", "jobQueueArn": "arn:gpu", "computeEnvironmentOrder": order}]}
        )

    def _jobs(self, jobStatus: str, jobQueue: str = "", arrayJobId: str = "") -> Any:  # noqa: N803
        if jobQueue:
            self.looks -= jobStatus == "PENDING"
            found = [{"jobId": "on", "arrayProperties": {"size": 300}}] if jobStatus == "PENDING" else []
            return {"jobSummaryList": found if self.looks >= 0 else []}
        tasks = [f"on:{i}" for i in range(150)] + ["off:1"] if jobStatus == "RUNNING" else []
        return {"jobSummaryList": [{"jobId": task} for task in tasks]}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "POLL_S", (0.001, 0.001))


def test_waits_for_queues_then_disables_then_waits_for_tasks() -> None:
    said: list[str] = []
    batch = Batch(named=3, looks=2)
    Draining(batch, NAME, DrainSpec(), said.append).run()
    assert batch.calls == [("update", {"computeEnvironment": NAME, "state": "DISABLED"})]
    assert said[0] == f"{NAME}: waiting for queues that name it: gpu"
    assert said[1].startswith(f"{NAME}: waiting for jobs that run on it: on:0, on:1") and "145 more" in said[1]
    assert "off:1" not in "".join(said)


def test_terminates_only_what_runs_here() -> None:
    batch = Batch(looks=2)
    Draining(batch, NAME, DrainSpec(jobs="terminate"), print).run()
    assert {call for call in batch.calls if call[0] == "terminate"} == {("terminate", f"on:{i}") for i in range(150)}


@pytest.mark.parametrize(
    ("batch", "said"),
    [(Batch(named=10**9), "queues that name it: gpu; take"), (Batch(looks=10**9), "jobs that run on it: on:0")],
    ids=["queue", "jobs"],
)
def test_says_what_is_left(batch: Batch, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "QUEUES_MIN", 0)
    with pytest.raises(DrainError, match=said):
        Draining(batch, NAME, DrainSpec(timeout_min=0), print).run()


def test_the_spec_is_found_again_in_the_tag() -> None:
    spec = DrainSpec(jobs="terminate", timeout_min=7)
    assert environment_hooks.drain_of({"tags": environment_hooks.tag_of(spec)}) == spec
    assert environment_hooks.drain_of({}) == DrainSpec()


def test_only_a_refused_delete_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    found: list[pulumi.ResourceHookBinding] = []
    memory.run(lambda: found.append(environment_hooks.environment_hooks({})))
    (hook,) = found[0].on_error or []

    def retried(operation: str, *errors: str) -> Any:
        return hook(pulumi.ErrorHookArgs("urn", "id", "spot", "type", failed_operation=operation, errors=[*errors]))

    in_use = "ClientException: Cannot delete, found existing JobQueue relationship"
    assert retried("delete", in_use)
    assert not retried("create", in_use)
    assert not retried("delete", "ClientException: Cannot delete, state must be DISABLED", in_use)
    assert not retried("delete", *[in_use] * (environment_hooks.RETRIES + 1))


CHANGES = {
    "in place, jobs go on": (
        {"instanceTypes": ["g6"]},
        {"terminateJobsOnUpdate": False},
        "running jobs may go on for 30",
    ),
    "in place, jobs end": ({"instanceTypes": ["g6"]}, {"terminateJobsOnUpdate": True}, "running jobs are terminated"),
    "scaling": ({"maxVcpus": 128}, {"terminateJobsOnUpdate": True}, None),
    "nothing": ({}, {}, None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_preview_says_what_an_update_does_to_jobs(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed, policy, wanted = CHANGES[change]
    said: list[str] = []
    monkeypatch.setattr("pulumi.log.info", said.append)
    found: list[pulumi.ResourceHookBinding] = []
    memory.run(lambda: found.append(environment_hooks.environment_hooks({})), preview=True)
    (hook,) = found[0].before_update or []
    old = {"computeResources": {"instanceTypes": ["g5"], "maxVcpus": 64}}
    new = {
        "computeResources": {**old["computeResources"], **changed},
        "updatePolicy": {"jobExecutionTimeoutMinutes": 30, **policy},
    }
    hook(pulumi.ResourceHookArgs("urn", "id", "spot", "type", old_inputs=old, new_inputs=new))
    assert len(said) == (wanted is not None)
    assert wanted is None or (wanted in said[0] and "instanceTypes" in said[0])


class Vanishing(Batch):
    """Its queue goes while its jobs are asked for."""

    def __init__(self, left: str) -> None:
        super().__init__(looks=1)
        self.left = left

    def describe_job_queues(self, jobQueues: list[str]) -> Any:  # noqa: N803
        return {"jobQueues": [{"jobQueueArn": jobQueues[0], "status": self.left}] if self.left else []}

    def _jobs(self, jobStatus: str, jobQueue: str = "", arrayJobId: str = "") -> Any:  # noqa: N803
        raise ClientError({"Error": {"Code": "ClientException", "Message": f"{jobQueue} not found"}}, "ListJobs")


@pytest.mark.parametrize("left", ["", *draining.GOING])
def test_a_queue_that_is_deleted_meanwhile_has_no_jobs(left: str) -> None:
    Draining(Vanishing(left), NAME, DrainSpec(), print).run()


def test_what_batch_refuses_for_another_reason_is_raised() -> None:
    with pytest.raises(ClientError, match="not found"):
        Draining(Vanishing("VALID"), NAME, DrainSpec(), print).run()
