"""Machines that a client which slept made for an attempt that others had ended by then."""

import json
from typing import Any

import pytest

from tests.jobs.agent.machines import Cloud, one, python
from tests.support.soak import sampled

RECORD = "accel-jobs/train-000000000000/record.json"
FOLDER = "accel-jobs/train-000000000000/attempts/1"


def record(*states: str, **more: Any) -> bytes:
    attempts = [{"number": number, "state": state} for number, state in enumerate(states, 1)]
    return json.dumps({"attempts": attempts, "ended": None, "outcome": "", **more}).encode()


OVER = [
    (record("made", ended="2026-11-22T00:00:00+00:00", outcome="cancelled"), "the job has ended: cancelled"),
    (record("ended"), "attempt 1 has ended before"),
    (record("gone", "planned"), "attempt 1 has ended before"),
    (record("made", "planned"), "attempt 2 has taken its place"),
]


@pytest.mark.parametrize(("written", "said"), sampled(OVER, [OVER[0], OVER[3]]))
def test_they_run_nothing_and_release_themselves(cloud: Cloud, written: bytes, said: str) -> None:
    cloud.google.objects[RECORD] = written
    one(cloud, python("print('ran')"), folder=FOLDER).run()
    assert cloud.google.printed() == [] and f"{FOLDER}/result-0.json" not in cloud.google.objects
    assert f"accel: host 0: {said}: the command is not run" in cloud.google.said()
    assert cloud.google.deleted == ["DELETE /compute/instances/train"]


def test_of_several_hosts_the_first_releases_them_all(cloud: Cloud) -> None:
    cloud.google.objects[RECORD] = record("gone", "made")
    machines = cloud.machines(python("print('ran')"), folder=FOLDER, hosts=2)
    for machine in reversed(machines):
        machine.run()
    assert cloud.google.printed(0) == cloud.google.printed(1) == []
    assert cloud.google.deleted == ["DELETE /compute/instances/train"]


@pytest.mark.parametrize("written", sampled([record("planned"), record("made"), b""], [record("planned"), b""]))
def test_the_attempt_that_counts_runs(cloud: Cloud, written: bytes) -> None:
    """Whether its client has said so yet or not; and where there is no record at all."""
    if written:
        cloud.google.objects[RECORD] = written
    one(cloud, python("print('ran')"), folder=FOLDER).run()
    assert cloud.google.printed() == ["ran"]


def test_an_attempt_that_followed_another_runs(cloud: Cloud) -> None:
    cloud.google.objects[RECORD] = record("gone", "made")
    one(cloud, python("print('ran')"), folder=FOLDER.replace("/1", "/2"), attempt=2).run()
    assert cloud.google.printed() == ["ran"]
