"""What any job may write: results decide how an attempt ended, and nothing of what is made next."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.diagnostics.errors import CloudSilent
from jobs.backends.vm.gpu.instances import instance_body
from jobs.backends.vm.record import Attempt, Record, as_json, of_json, result_of
from jobs.backends.vm.records import Records, folder
from jobs.backends.vm.state_machine import MachineState, Write, decide
from jobs.backends.vm.tpu.queued_resources import queued_resource
from tests.jobs.backends.test_vms_compare import sent
from tests.jobs.backends.tpu_world import Client, World

NOW = datetime(2026, 11, 22, tzinfo=UTC)
FIELDS = ("exit_code", "reason", "started", "stopped", "lines", "zone", "name", "body", "attempts", "serviceAccounts")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["preempted", "exited"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
RESULTS = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=len(FIELDS))


def request(record: Record, attempt: Attempt) -> dict[str, Any]:
    make = queued_resource if record.kind == "tpu-vm" else instance_body
    return make(record, attempt)


def after(record: Record, result: dict[str, Any]) -> Record:
    """The record once every host has told this, and its machines are gone."""
    results = {host: result_of(json.loads(json.dumps(result)), host) for host in range(record.hosts)}
    for _ in range(4):
        step = decide(record, MachineState("absent" if record.last.state == "ended" else "running", "X"), results, NOW)
        if not isinstance(step, Write):
            break
        record = of_json(json.loads(json.dumps(as_json(step.record))), "test")
        results = results if record.last.state == "made" else {}
    return record


@pytest.mark.parametrize("kind", ["gce", "tpu-vm"])
@given(result=RESULTS)
def test_nothing_of_a_result_is_in_what_is_made_next(kind: str, result: dict[str, Any]) -> None:
    record, _ = sent(kind, retries=1, lost_retries=1)
    record = record.with_last(state="made", made=NOW.isoformat(), started=NOW.isoformat())
    moved = after(record, result)
    assert replace(moved, ended=None, outcome="", reason="", attempts=record.attempts) == replace(
        record, body=moved.body
    ) and moved.body == json.loads(json.dumps(record.body))
    honest = after(record, {"exit_code": 1, "reason": "preempted" if moved.attempts[0].outcome == "lost" else "exited"})
    if moved.last.number == 2:
        assert request(moved, moved.last) == request(honest, honest.last)


def told(name: str, text: bytes | str) -> tuple[Record, Records]:
    record, _ = sent("gce")
    world = World()
    world.put(f"{folder(record.name, 1)}/{name}", text, None)
    google: Any = Client(world)
    return record, Records(google, "acme-jobs")


@pytest.mark.parametrize("text", ["", "[]", "3", '"exited"', "[" * 100_000, b"\xff\xfe{}"])
def test_what_is_no_result_is_told_as_such(text: bytes | str) -> None:
    record, records = told("result-0.json", text)
    with pytest.raises(CloudSilent, match=r"result-0\.json: is no result of a job"):
        records.results(record, record.last)


@pytest.mark.parametrize("name", ["result-1.json", "result-00.json", "result-9999999.json", "result-0.json/x.json"])
def test_results_of_hosts_that_the_job_has_not_are_not_read(name: str) -> None:
    record, records = told(name, '{"exit_code": 0, "reason": "exited"}')
    assert records.results(record, record.last) == {}
