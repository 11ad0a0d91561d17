"""One look at a whole bucket: jobs and declared queues, each moved on, whatever becomes of the others."""

import json
from typing import Any

import pytest

from accel.contract import buckets
from jobs.backends.vm import function
from jobs.backends.vm.function import Reconciler
from jobs.backends.vm.records import Records
from tests.jobs.backends.test_tpu_vm_walk import RECORD, TARGETS
from tests.jobs.backends.test_vms_queues import QueueClient, QueueWorld
from tests.jobs.backends.test_vms_standing import BUCKET
from tests.jobs.backends.tpu_world import World


class Both(QueueWorld):
    """A job's machines run its command; a queue's run nothing."""

    reads = 0

    def _boot(self, name: str) -> None:
        if "accel-job" in self.requests[name]["tpu"]["nodeSpec"][0]["node"]["metadata"]:
            World._boot(self, name)


class Counting(QueueClient):
    def read(self, api: str, path: str, **query: object) -> tuple[bytes, str]:
        if "record.json" in path:
            self.world.reads += 1  # type: ignore[attr-defined]
        return super().read(api, path, **query)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Both:
    monkeypatch.setattr(function, "PAUSE_S", 0)
    made = Both()
    made.declare()
    made.put("accel-targets/tpus.json", json.dumps(TARGETS["tpus"]), None)
    google: Any = QueueClient(made)
    Records(google, BUCKET).claim(RECORD)
    return made


def looks(world: Both, reconciler: Reconciler, times: int = 1) -> list[str]:
    failures: list[str] = []
    for _ in range(times):
        google: Any = Counting(world)
        failures = reconciler.reconcile(google, lambda text: None, 0)
        for name in list(world.requests):
            world.go_on(name)
    return failures


def outcome(world: Both) -> str:
    google: Any = QueueClient(world)
    return Records(google, BUCKET).read(RECORD.name)[0].outcome


def test_a_job_and_a_queue_are_moved_on_to_where_they_belong(world: Both) -> None:
    assert looks(world, Reconciler(BUCKET), 12) == []
    assert outcome(world) == "succeeded" and world.ran == [1] and world.states == ["ACTIVE"]


def test_a_lost_job_runs_again(world: Both) -> None:
    reconciler = Reconciler(BUCKET)
    looks(world, reconciler, 3)
    world.move(next(name for name in world.requests if RECORD.name in name), "SUSPENDED")
    looks(world, reconciler, 12)
    assert outcome(world) == "succeeded" and world.ran == [2]


def test_what_has_ended_is_read_once_by_a_process_that_lives_on(world: Both) -> None:
    reconciler = Reconciler(BUCKET)
    looks(world, reconciler, 14)
    world.reads = 0
    looks(world, reconciler)
    of_both, world.reads = world.reads, 0
    looks(world, Reconciler(BUCKET))
    assert of_both == world.reads - 1


def test_a_record_that_is_none_does_not_keep_the_others_waiting(world: Both) -> None:
    world.put("accel-jobs/broken/record.json", "{", None)
    failures = looks(world, Reconciler(BUCKET), 12)
    assert [each.partition(":")[0] for each in failures] == ["broken"] and outcome(world) == "succeeded"


@pytest.mark.parametrize("failures, status", [([], 200), (["train: refused"], 500)])
def test_the_function_tells_the_scheduler_what_failed(
    failures: list[str], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(buckets.VARIABLE, BUCKET)
    monkeypatch.setenv(function.GIVEN, "")
    monkeypatch.setattr(function, "_token", lambda: "token")
    monkeypatch.setattr(Reconciler, "reconcile", lambda *given: failures)
    text, code = function.handler(None)
    assert code == status and all(each in text and each in capsys.readouterr().out for each in failures)
