"""States of queued resources and of their nodes, and Google's words, as those of an attempt."""

from typing import Any

import pytest

from accel.clouds.google.api import Google
from accel.diagnostics.errors import CloudRefused, CloudSilent
from jobs.backends.vm.state_machine import MachineState, NoCapacity
from jobs.backends.vm.tpu import queued_resources
from jobs.backends.vm.tpu.queued_resources import QueuedResources
from sandbox.google.discovery import document
from tests.jobs.backends.tpu_target import make_request
from tests.jobs.backends.vm_records import make_record
from tests.jobs.test_google_api import QUICK, Server, server

__all__ = ["server"]

CAPACITY = 'There is no more capacity in the zone "us-central1-a"; you can try in another zone'
STATE = document("tpu.v2").schema("QueuedResourceState")["properties"]["state"]["enum"]
NODE = document("tpu.v2").schema("Node")["properties"]["state"]["enum"]


def test_every_state_that_the_api_has_is_known() -> None:
    assert set(STATE) == {*queued_resources.REQUEST, "ACTIVE", "STATE_UNSPECIFIED"}
    assert set(NODE) == {*queued_resources.NODE, "STATE_UNSPECIFIED"}


@pytest.mark.parametrize(
    "state, expected",
    [
        ({}, MachineState("waiting", "STATE_UNSPECIFIED")),
        ({"state": "ACCEPTED"}, MachineState("waiting", "ACCEPTED")),
        ({"state": "A_NEW_ONE"}, MachineState("waiting", "A_NEW_ONE")),
        ({"state": "ACTIVE"}, None),
        ({"state": "DELETING"}, MachineState("leaving", "DELETING")),
        ({"state": "FAILED"}, MachineState("failed", "FAILED", "Google says no reason")),
        (
            {"state": "FAILED", "failedData": {"error": {"code": 8, "message": CAPACITY}}},
            MachineState("failed", "FAILED", CAPACITY, stockout=True),
        ),
        (
            {"state": "FAILED", "failedData": {"error": {"code": 8, "message": "Quota limit 'X' has been exceeded."}}},
            MachineState("failed", "FAILED", "Quota limit 'X' has been exceeded."),
        ),
        (
            {"state": "FAILED", "failedData": {"error": {"code": 9, "message": "aborted while in state PREEMPTED"}}},
            MachineState("lost", "FAILED", "aborted while in state PREEMPTED"),
        ),
        (
            {"state": "FAILED", "failedData": {"error": {"code": 3, "message": "no such runtime"}}},
            MachineState("failed", "FAILED", "no such runtime"),
        ),
    ],
)
def test_a_request_by_its_state(state: dict[str, Any], expected: MachineState | None) -> None:
    assert queued_resources.of_request(state) == expected


@pytest.mark.parametrize(
    "nodes, expected",
    [
        (["READY", "READY"], "running"),
        (["READY", "CREATING"], "starting"),
        (["READY", "REPAIRING"], "starting"),
        (["CREATING", "PREEMPTED"], "lost"),
        (["READY", "TERMINATED"], "lost"),
        (["READY", None], "lost"),
        (["READY", "A_NEW_ONE"], "starting"),
    ],
)
def test_nodes_by_their_states(nodes: list[str | None], expected: str) -> None:
    found = queued_resources.of_nodes({f"n-{i}": {"state": each} if each else None for i, each in enumerate(nodes)})
    assert found.state == expected and (expected == "running" or found.reason.startswith("node n-1 is "))


def test_a_node_says_what_ails_it() -> None:
    found = queued_resources.of_nodes({"n": {"state": "REPAIRING", "healthDescription": "a chip\nis bad"}})
    assert found.reason == "node n is REPAIRING: a chip is bad"


@pytest.mark.parametrize(
    "error, kind",
    [
        ({"code": 8, "message": CAPACITY}, NoCapacity),
        # https://github.com/skypilot-org/skypilot/issues/4579: of a request without a reservation
        ({"code": 8, "message": "Insufficient reserved capacity. Contact customer support."}, NoCapacity),
        ({"code": 13, "message": "internal"}, CloudSilent),
        ({"code": 3, "message": "bad"}, CloudRefused),
    ],
)
def test_an_operation_that_ends_in_an_error(error: dict[str, Any], kind: type[Exception]) -> None:
    assert type(queued_resources.operation_refusal("n in z", error)) is kind


def test_a_request_whose_operation_has_failed_already(server: Server) -> None:
    """Before anything of it could be seen."""
    record = make_record(make_request())
    failed = {"name": "projects/p/locations/z/operations/o", "done": True, "error": {"code": 8, "message": CAPACITY}}
    server.answers = [(200, failed)]
    with pytest.raises(NoCapacity, match="no more capacity"):
        QueuedResources(Google(QUICK)).make(record, record.last)
    assert server.methods() == ["POST"]
