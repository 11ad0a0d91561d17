"""A file with targets that a stack has changed since: submit says so, and a stop of today holds all the same."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from accel.contract import claims, stop
from accel.contract.targets import AwsBatchTarget, write
from jobs.client import published_targets
from tests.jobs.backends.aws_batch_cloud import Cloud
from tests.jobs.backends.aws_batch_target import CREDENTIALS, REGION, make_target

Invoke = Callable[..., Result]
PATH = "/accel/dev/targets"
SOURCE = f"ssm:{REGION}{PATH}"
JOB = {"name": "a", "image": "registry.example/train:1.0", "accelerator": {"count": 1}}
SUBMIT = ("submit", "job.yaml", "--to", "gpu", "--no-quota")


class Stack:
    """What a stack publishes in SSM, and the file that was exported of it."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        self.cloud = cloud
        self._file = folder / ".accel" / "targets.json"
        self._file.parent.mkdir()
        (folder / "job.yaml").write_text(json.dumps(JOB))

    def up(self, **changes: Any) -> AwsBatchTarget:
        target = make_target(**changes)
        text = json.dumps(write({"gpu": target})["gpu"])
        self.cloud.client("ssm").put_parameter(Name=f"{PATH}/gpu", Value=text, Type="String", Overwrite=True)
        return target

    def export(self, target: AwsBatchTarget) -> None:
        self._file.write_text(json.dumps(write({"gpu": target.model_copy(update={"published": SOURCE})})))

    def stop(self) -> None:
        row = {claims.KEY: {"S": stop.KEY}, stop.STOPPED: {"S": "budget all is crossed"}}
        self.cloud.client("dynamodb").put_item(TableName="claims", Item=row)


@pytest.fixture
def stack(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    cloud = Cloud()
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.endpoint)
    monkeypatch.setattr(published_targets, "NOW_S", 0.0)
    yield Stack(cloud, home)
    cloud.stop()


def test_a_stop_that_came_after_the_file_is_refused(stack: Stack, invoke: Invoke) -> None:
    stack.export(stack.up())
    assert invoke(*SUBMIT).exit_code == 0
    stack.up(budget_stops=True)
    stack.stop()
    told = invoke(*SUBMIT)
    assert told.exit_code == 5 and "budget all is crossed" in told.stderr, told.stderr
    assert "warning: target gpu: " in told.stderr and "budget_stops" in told.stderr


def test_what_the_stack_has_changed_since_is_said(stack: Stack, invoke: Invoke) -> None:
    target = stack.up()
    stack.export(target)
    assert "warning" not in invoke(*SUBMIT).stderr
    stack.up(log_group="/accel/other", shares={"a": 1})
    told = invoke(*SUBMIT)
    assert told.exit_code == 0
    (line,) = [line for line in told.stderr.splitlines() if line.startswith("warning: ")]
    assert line.startswith("warning: target gpu: the stack was updated since ") and "log_group, shares" in line
    assert "`stacks export`" in line and f"--targets {SOURCE}" in line
    assert invoke("--strict", *SUBMIT).exit_code == 2
    assert "warning" not in invoke(*SUBMIT, "--dry-run").stderr, "asks no cloud"
    assert "warning" not in invoke(*SUBMIT, "--targets", SOURCE).stderr
    doctor = invoke("doctor").stdout
    assert "warn  targets: target gpu: the stack was updated since" in doctor
    stack.export(make_target(log_group="/accel/other", shares={"a": 1}))
    assert "the stack was updated" not in invoke("doctor").stdout


def test_a_target_that_the_stack_no_longer_has(stack: Stack, invoke: Invoke) -> None:
    stack.export(stack.up())
    ssm = stack.cloud.client("ssm")
    ssm.put_parameter(Name=f"{PATH}/other", Value='{"kind": "local"}', Type="String")
    ssm.delete_parameter(Name=f"{PATH}/gpu")
    assert "warning: target gpu: the stack no longer has it" in invoke(*SUBMIT).stderr


def test_where_nothing_can_be_read_the_file_stands(
    stack: Stack, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.export(stack.up())
    monkeypatch.setenv("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:9")
    told = invoke(*SUBMIT)
    assert told.exit_code == 0 and "warning" not in told.stderr


def test_the_stack_is_asked_once_a_minute(stack: Stack, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_targets, "NOW_S", 60.0)
    stack.export(stack.up())
    assert invoke(*SUBMIT).exit_code == 0
    stack.cloud.client("ssm").delete_parameter(Name=f"{PATH}/gpu")
    assert "warning" not in invoke(*SUBMIT).stderr
