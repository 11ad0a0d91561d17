"""Logs of tasks on Google Batch: merged, of one task, late, followed to their end."""

import threading
from typing import Any

import pytest

from accel.diagnostics.errors import BadInput, NotFound
from jobs.backends.base import Phase
from jobs.backends.google_batch import labels
from jobs.backends.google_batch import logs as module
from tests.jobs.backends.google_batch_cloud import REGION, Cloud, script
from tests.support.google_fake import P
from tests.support.soak import SOAK, soak_only
from tests.support.waiting import PATIENCE_S, until

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.google_batch_cloud"]


@pytest.fixture
def cloud(batch_cloud: Cloud) -> Cloud:
    return batch_cloud


def test_a_followed_job(cloud: Cloud) -> None:
    ref = cloud.backend().submit(cloud.request("followed", **script("for i in 1 2 3; do echo line $i; done; exit 3")))
    assert cloud.printed(ref) == [("", "line 1"), ("", "line 2"), ("", "line 3")]
    assert cloud.backend().status(ref).phase is Phase.FAILED
    assert cloud.printed(ref, follow=False) == [("", "line 1"), ("", "line 2"), ("", "line 3")]
    assert cloud.printed(ref, follow=False, tail=2) == cloud.printed(ref, tail=2) == [("", "line 2"), ("", "line 3")]


def test_tasks_side_by_side_and_one_alone(cloud: Cloud) -> None:
    ref = cloud.backend().submit(
        cloud.request("tasks", **script("echo a $BATCH_TASK_INDEX; echo b $BATCH_TASK_INDEX", tasks=11))
    )
    found = cloud.printed(ref)
    assert sorted(found) == sorted((f"task {n}", f"{letter} {n}") for n in range(11) for letter in "ab")
    assert [text for source, text in found if source == "task 7"] == ["a 7", "b 7"]
    assert cloud.printed(ref, task=1) == [("", "a 1"), ("", "b 1")]
    with pytest.raises(BadInput, match=r"task: google-batch:\S+ has tasks 0 to 10, not 11"):
        cloud.printed(ref, task=11)


@soak_only
def test_late_lines_and_calls_that_break(cloud: Cloud) -> None:
    """Each entry can be read at its own time, after entries that were written later."""
    cloud.fake.fault(log_lag_s=0.25)
    count = 2000 if SOAK else 60
    text = f"i=0; while [ $i -lt {count} ]; do echo $BATCH_TASK_INDEX.$i; i=$((i+1)); done"
    ref = cloud.backend().submit(cloud.request("late", **script(text, tasks=3)))
    cloud.proxy.faults["POST entries:list"] = ["503", "reset", "429", "accept+reset", "accept+truncate"] * 2
    found = [line for _, line in cloud.printed(ref)]
    assert len(found) == len(set(found)) == 3 * count


def test_attempts_of_a_task(cloud: Cloud) -> None:
    ref = cloud.backend().submit(cloud.request("attempts", **script("echo again; exit 1", retries=2)))
    assert [text for _, text in cloud.printed(ref)] == ["again"] * 3


def test_a_job_that_is_cancelled_while_it_is_followed(cloud: Cloud) -> None:
    backend = cloud.backend()
    ref = backend.submit(cloud.request("cancelled", **script("echo begun; sleep 600")))
    seen: list[str] = []
    reader = threading.Thread(target=lambda: seen.extend(line.text for line in backend.logs(ref, follow=True)))
    reader.start()
    until(lambda: seen)
    cloud.backend().cancel(ref, "enough")
    reader.join(PATIENCE_S)
    assert not reader.is_alive() and seen == ["begun"]


def test_what_has_no_logs(cloud: Cloud) -> None:
    request = cloud.request("elsewhere", **script("exit 0"))
    request.body["job"]["logsPolicy"] = {"destination": "PATH", "logsPath": "/mnt/logs"}
    ref = cloud.backend().submit(request)
    with pytest.raises(BadInput, match="they are in /mnt/logs of a mount"):
        cloud.printed(ref)
    with pytest.raises(NotFound, match="Batch knows no such job"):
        cloud.printed(labels.Scope.parse(ref.scope).ref("nothing-0123456789ab"))
    alone = cloud.backend().submit(cloud.request("alone", **script("exit 0")))
    with pytest.raises(BadInput, match="has no tasks, not 0"):
        cloud.printed(alone, task=0)
    assert f"{P}/locations/{REGION}" == labels.Scope.parse(ref.scope).parent


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"textPayload": "a line\n"}, "a line"),
        ({"textPayload": ""}, ""),
        ({"jsonPayload": {"message": "said"}}, "said"),
        ({"jsonPayload": {"step": 3, "loss": 0.5}}, '{"loss": 0.5, "step": 3}'),
        ({}, "{}"),
    ],
)
def test_texts(entry: dict[str, Any], text: str) -> None:
    assert module.text(entry) == text
