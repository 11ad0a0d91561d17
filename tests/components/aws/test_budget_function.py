"""What the function of the budgets does: the levers of AWS, and what it makes of a notification and of its schedule."""

import json
import time
from calendar import timegm
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

import components.aws.budget_function as budget_function
from accel.budget.acting import LEASE_S, look, resume
from accel.budget.levers import SUBMISSIONS, Change
from accel.budget.spending import Limit, Reading
from accel.budget.state import State
from components.aws.budget_function import (
    SETTINGS,
    Environments,
    Jobs,
    Queues,
    Settings,
    UnconfirmedNotification,
    UnfinishedStop,
    handler,
)
from tests.support.stopping import Killed, Memory

BATCH = "arn:aws:batch:us-east-1:111122223333"
QUEUE, SPOT, DEMAND = f"{BATCH}:job-queue/gpu", f"{BATCH}:compute-environment/spot", f"{BATCH}:compute-environment/od"
TOPIC, MINE = "arn:aws:sns:us-east-1:111122223333:stop-gpus", "arn:aws:sns:eu-west-1:111122223333:mine"
NAME = "gpus-1a2b3c4"
LIMIT = Limit("gpus", 1.0, "actual", None)
OVER = Reading("gpus", "2026-11-01", 1000, "USD", 1200)


def refused(text: str) -> ClientError:
    return ClientError({"Error": {"Code": "ClientException", "Message": text}}, "Update")


@dataclass
class Batch:
    """AWS Batch as far as the levers ask it. A maximum below what is wanted is refused, as AWS does it."""

    queues: dict[str, str] = field(default_factory=lambda: {QUEUE: "ENABLED"})
    sizes: dict[str, tuple[str, int, int]] = field(default_factory=dict[str, tuple[str, int, int]])
    wanted: dict[str, int] = field(default_factory=dict[str, int])
    jobs: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """State, and the queue or array that it is listed under."""
    failing: dict[str, str] = field(default_factory=dict[str, str])
    """What AWS says instead of updating that one."""
    calls: int = 0
    killed_at: int | None = None

    def _changed(self, name: str) -> None:
        self.calls += 1
        if self.calls == self.killed_at:
            raise Killed
        if name in self.failing:
            raise refused(self.failing[name])

    def describe_job_queues(self, jobQueues: list[str]) -> Any:  # noqa: N803
        found = [{"jobQueueArn": arn, "state": self.queues[arn]} for arn in jobQueues if arn in self.queues]
        return {"jobQueues": found}

    def update_job_queue(self, jobQueue: str, state: str) -> None:  # noqa: N803
        self._changed(jobQueue)
        self.queues[jobQueue] = state

    def describe_compute_environments(self, computeEnvironments: list[str]) -> Any:  # noqa: N803
        found: list[Any] = []
        for arn in (one for one in computeEnvironments if one in self.sizes):
            state, least, most = self.sizes[arn]
            of = {"minvCpus": least, "maxvCpus": most, "desiredvCpus": self.wanted.get(arn, 0)}
            found.append({"computeEnvironmentArn": arn, "state": state, "computeResources": of})
        return {"computeEnvironments": found}

    def update_compute_environment(self, computeEnvironment: str, state: str, computeResources: Any) -> None:  # noqa: N803
        self._changed(computeEnvironment)
        most = computeResources.get("maxvCpus", self.sizes[computeEnvironment][2])
        if most < self.wanted.get(computeEnvironment, 0):
            raise refused("Manually scaling down compute environment is not supported.")
        self.sizes[computeEnvironment] = (state, computeResources["minvCpus"], most)

    def get_paginator(self, name: str) -> Any:
        assert name == "list_jobs"
        return SimpleNamespace(paginate=self._pages)

    def _pages(self, jobStatus: str, jobQueue: str = "", arrayJobId: str = "") -> Iterator[Any]:  # noqa: N803
        for job, (state, under) in self.jobs.items():
            if (state, under) == (jobStatus, jobQueue or arrayJobId):
                array = {"arrayProperties": {"size": 9}} if state == "PENDING" else {}
                yield {"jobSummaryList": [{"jobId": job, "jobName": "train", **array}]}

    def terminate_job(self, jobId: str, reason: str) -> None:  # noqa: N803
        self._changed(jobId)
        self.jobs[jobId] = ("FAILED", self.jobs[jobId][1])


def pull(batch: Batch, store: Memory, now: float = 0) -> Any:
    """The next look at it."""
    levers = [Queues(batch, [QUEUE]), Environments(batch, list(batch.sizes))]
    return look([LIMIT], [OVER], levers, store, now)


def test_a_stop_leaves_the_maximum_whatever_runs() -> None:
    """A maximum that no instance fits is the reason of a queue's time limit, which would cancel what waits."""
    batch, store = Batch(sizes={SPOT: ("ENABLED", 8, 256), DEMAND: ("DISABLED", 0, 96)}, wanted={SPOT: 48}), Memory()
    done = pull(batch, store)
    assert "environment spot: ENABLED, 8 to 256 vCPUs to DISABLED, 0 to 256 vCPUs" in done.done and not done.failures
    assert batch.sizes == {SPOT: ("DISABLED", 0, 256), DEMAND: ("DISABLED", 0, 96)}
    batch.wanted[SPOT] = 0
    assert not pull(batch, store, 10).done
    resume([Queues(batch, [QUEUE]), Environments(batch, list(batch.sizes))], store, 20)
    assert batch.sizes == {SPOT: ("ENABLED", 8, 256), DEMAND: ("DISABLED", 0, 96)}


@pytest.mark.parametrize(("after", "now"), [(0, 0), (0, 48), (0, 256), (48, 48), (48, 256)])
@pytest.mark.parametrize("through", [True, False], ids=["finished", "unfinished"])
def test_a_stop_of_an_earlier_version_is_resumed(after: int, now: int, through: bool) -> None:
    """It took the maximum down as well, at once or with what ran; the call for it may have been refused."""
    before = {"state": "ENABLED", "min": 8, "max": 256}
    set_to = {"state": "DISABLED", "min": 0, "max": after}
    change = Change("maximums", "aws-environment", SPOT, before, set_to, "any words", later=after > 0)
    earlier = State("budget gpus", 0, changes=(SUBMISSIONS, change), finished=("aws-environment",) if through else ())
    batch, store = Batch(sizes={SPOT: ("DISABLED", 0, now)}), Memory()
    store.save(earlier, store.load()[1])
    assert not pull(batch, store, 10).failures
    assert batch.sizes[SPOT] == ("DISABLED", 0, now), "what the other version did is not done again"
    assert not resume([Queues(batch, [QUEUE]), Environments(batch, [SPOT])], store, 20).failures
    assert batch.sizes[SPOT] == ("ENABLED", 8, 256)


def test_a_forged_stop_changes_nothing_of_others() -> None:
    queue, other = f"{BATCH}:job-queue/theirs", f"{BATCH}:compute-environment/theirs"
    sizes = {"state": "DISABLED", "min": 0, "max": 64}
    forged = (
        Change("queues", "aws-queue", queue, "ENABLED", "DISABLED", "any words"),
        Change("maximums", "aws-environment", other, {"state": "ENABLED", "min": 64, "max": 640}, sizes, "any words"),
    )
    batch, store = Batch(queues={QUEUE: "ENABLED", queue: "DISABLED"}, sizes={other: ("DISABLED", 0, 64)}), Memory()
    store.save(State("forged", 0, changes=(SUBMISSIONS, *forged)), store.load()[1])
    done = resume([Queues(batch, [QUEUE]), Environments(batch, [SPOT])], store, 20)
    left = ["environment theirs is not of this stack", "queue theirs is not of this stack"]
    assert list(done.done)[:2] == [f"left as it is: {each}" for each in left]
    assert batch.queues[queue] == "DISABLED" and batch.sizes[other] == ("DISABLED", 0, 64)
    assert not done.failures and store.load()[0].stopped is None


@settings(max_examples=300, deadline=None)
@given(
    size=st.tuples(st.sampled_from(["ENABLED", "DISABLED"]), st.integers(0, 4), st.integers(4, 64)),
    wanted=st.lists(st.integers(0, 64), min_size=1, max_size=4),
    fails=st.sets(st.integers(0, 4)),
    kill_call=st.integers(1, 8),
    kill_save=st.integers(0, 8),
)
def test_whatever_failed_on_the_way_it_is_as_before(
    size: tuple[str, int, int], wanted: list[int], fails: set[int], kill_call: int, kill_save: int
) -> None:
    """Also where the last call of the stop failed: nothing has to go on with it before it can be taken back."""
    batch, store, now = Batch(sizes={SPOT: size}, killed_at=kill_call), Memory(killed_at=kill_save), 0.0
    levers = [Queues(batch, [QUEUE]), Environments(batch, [SPOT])]
    for number, vcpus in enumerate(sorted(wanted, reverse=True)):
        batch.wanted[SPOT] = min(vcpus, batch.sizes[SPOT][2])
        batch.failing = {SPOT: "refused", QUEUE: "refused"} if number in fails else {}
        try:
            pull(batch, store, now)
        except Killed:
            batch.killed_at = store.killed_at = None
        now += LEASE_S
    batch.failing, batch.killed_at, store.killed_at = {}, None, None
    assert not resume(levers, store, now).failures
    assert (batch.sizes, batch.queues) == ({SPOT: size}, {QUEUE: "ENABLED"})


def test_what_somebody_has_changed_since_is_left_and_said() -> None:
    batch, store = Batch(sizes={SPOT: ("ENABLED", 0, 256), DEMAND: ("ENABLED", 0, 96)}), Memory()
    pull(batch, store)
    batch.sizes = {SPOT: ("ENABLED", 0, 16)}
    done = resume([Queues(batch, [QUEUE]), Environments(batch, [SPOT, DEMAND])], store, 10)
    assert "left as it is: environment od is gone" in done.done
    assert "restored: queue gpu: DISABLED to ENABLED" in done.done
    assert "left as it is: environment spot is ENABLED, 0 to 16 vCPUs" in done.done
    assert batch.sizes == {SPOT: ("ENABLED", 0, 16)} and batch.queues == {QUEUE: "ENABLED"}


def test_running_jobs_and_tasks_of_arrays_are_ended_some_at_a_time() -> None:
    batch = Batch(
        jobs={
            "one": ("RUNNING", QUEUE),
            "array": ("PENDING", QUEUE),
            "array:0": ("STARTING", "array"),
            "array:1": ("RUNNABLE", "array"),
            "waits": ("RUNNABLE", QUEUE),
        }
    )
    lever, store, limit = Jobs(batch, [QUEUE], 1), Memory(), Limit("gpus", 1.0, "actual", 0)
    look([limit], [OVER], [lever], store, 0)
    assert [job for job, (state, _) in batch.jobs.items() if state == "FAILED"] == ["one"]
    look([], [], [lever], store, 10)
    assert [job for job, (state, _) in batch.jobs.items() if state == "FAILED"] == ["one", "array:0"]
    assert "aws-job" in store.load()[0].finished


def test_a_change_under_way_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_function, "PAUSE_S", 0)
    answers = iter([refused("Cannot update, resource is being modified")] * 2)

    def call() -> str:
        for error in answers:
            raise error
        return "done"

    assert budget_function.call_patiently(call) == "done"


class Table:
    """The claim table."""

    exceptions = SimpleNamespace(ConditionalCheckFailedException=ClientError)

    def __init__(self) -> None:
        self.item: Any = None

    def get_item(self, **asked: Any) -> Any:
        assert asked["Key"] == {"submission_key": {"S": "accel-budget-stop"}} and asked["ConsistentRead"]
        return {"Item": self.item} if self.item else {}

    def put_item(self, Item: Any, ExpressionAttributeValues: Any, **_: Any) -> None:  # noqa: N803
        assert not self.item or self.item["version"] == ExpressionAttributeValues[":seen"]
        self.item = Item


class World:
    """What the function finds: a budget, a table, a topic, and the services' clients."""

    def __init__(self) -> None:
        self.spent, self.day, self.told = 0.0, 15, list[str]()
        self.batch, self.table = Batch(sizes={SPOT: ("ENABLED", 0, 256)}), Table()

    def client(self, service: str, region_name: str | None = None) -> Any:
        assert service == "budgets" or region_name == ("eu-west-1" if service == "sns" else "us-east-1")
        return {"batch": self.batch, "dynamodb": self.table, "budgets": self, "sns": self}[service]

    def describe_budget(self, AccountId: str, BudgetName: str) -> Any:  # noqa: N803
        assert (AccountId, BudgetName) == ("111122223333", NAME)
        spend = {"ActualSpend": {"Amount": str(self.spent), "Unit": "USD"}}
        return {"Budget": {"BudgetLimit": {"Amount": "1000.0", "Unit": "USD"}, "CalculatedSpend": spend}}

    def publish(self, TopicArn: str, Subject: str, Message: str) -> None:  # noqa: N803
        assert TopicArn == MINE
        self.told.append(Message)

    def notified(self) -> Any:
        return handler({"Records": [{"Sns": {"TopicArn": TOPIC, "Message": "any words"}}]}, None)

    def scheduled(self) -> Any:
        return handler({"source": "aws.events"}, None)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    told = Settings(
        region="us-east-1",
        account="111122223333",
        table="claims",
        budgets={NAME: {"budget": "gpus", "at": 1.0, "basis": "actual", "running_after_s": None}},
        topics={TOPIC: NAME},
        queues=[QUEUE],
        environments=[SPOT],
        told=[MINE],
    )
    monkeypatch.setenv(SETTINGS, json.dumps(vars(told)))
    monkeypatch.setattr(budget_function, "import_module", lambda name: made if name == "boto3" else import_module(name))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    def now() -> float:
        return timegm((2026, 11, made.day, 12, 0, 0))

    def utc(at: float | None = None) -> time.struct_time:
        return time.gmtime(now() if at is None else at)

    monkeypatch.setattr(budget_function, "time", SimpleNamespace(time=now, gmtime=utc, strftime=time.strftime))
    return made


def test_a_notification_stops_once_and_is_passed_on(world: World) -> None:
    world.spent = 1200
    assert len(world.notified()["done"]) == 3
    assert world.batch.sizes == {SPOT: ("DISABLED", 0, 256)} and world.table.item["stopped"]["S"].startswith(
        "budget gpu"
    )
    (text,) = world.told
    assert "1,200.00 USD" in text and "queue gpu: ENABLED to DISABLED" in text and "`stacks budget resume`" in text
    assert world.notified()["done"] == [] and len(world.told) == 1, "delivered twice"


def test_a_notification_before_its_time_is_not_lost(world: World) -> None:
    with pytest.raises(UnconfirmedNotification, match="gpus: notified, and below the line"):
        world.notified()
    assert world.scheduled() == {"done": [], "stopped": None} and world.table.item is None
    world.spent, world.day = 1200, 1
    assert world.scheduled()["stopped"] is None, "it may be what the last month cost"
    world.day = 2
    assert world.scheduled()["stopped"] and world.batch.queues == {QUEUE: "DISABLED"}


def test_what_fails_is_said_once_and_tried_again(world: World) -> None:
    world.spent, world.batch.failing = 1200, {SPOT: "environment is INVALID"}
    for call in (world.notified, world.scheduled, world.scheduled):
        with pytest.raises(UnfinishedStop, match="environment is INVALID"):
            call()
    (text,) = world.told
    assert "failed, and tried again: " in text and "queue gpu: ENABLED to DISABLED" in text
    world.batch.failing = {}
    assert world.scheduled()["stopped"] and world.batch.sizes == {SPOT: ("DISABLED", 0, 256)}
