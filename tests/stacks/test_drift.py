"""What counts as drift: properties that matter, ends that are near, answers that do not come."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import stacks.operations.drift.google as drift_google
import stacks.operations.drift.state as drift_state
from accel.diagnostics.errors import CloudRefused, NoCredentials
from sandbox.environment import project
from stacks.operations.drift.differences import Drift, attempt_check, ending, in_order
from stacks.operations.leaks.orphans import Orphan, Stacks

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
FORTNIGHT = timedelta(days=14)
CE = "aws:batch/computeEnvironment:ComputeEnvironment"


@pytest.mark.parametrize(
    "type_, path, quiet",
    [
        (CE, "computeResources.desiredVcpus", True),
        (CE, "computeResources.maxVcpus", False),
        (CE, "state", False),
        ("gcp:container/nodePool:NodePool", "nodeCount", True),
        ("gcp:container/nodePool:NodePool", "autoscaling.maxNodeCount", False),
        ("gcp:container/cluster:Cluster", "minMasterVersion", True),
        ("kubernetes:apps/v1:DaemonSet", "status.numberReady", True),
        ("kubernetes:apps/v1:DaemonSet", "metadata.resourceVersion", True),
        ("kubernetes:apps/v1:DaemonSet", "spec.template.spec.status", False),
        ("aws:ssm/parameter:Parameter", "nodeCount", False),
    ],
)
def test_what_the_clouds_change_themselves(type_: str, path: str, quiet: bool) -> None:
    assert drift_state.noise(type_, path) == quiet


def test_every_type_that_is_looked_at_is_one_of_the_providers() -> None:
    tables = project() / "sandbox" / "plugins"
    known = [path.read_text() for path in (*tables.glob("aws/tables/*.yaml"), tables / "gcp" / "table.yaml")]
    for name in (*drift_state.NOISE, *drift_google.KINDS):
        assert any(f"\n{name}:" in text for text in known), name


def step(op: str, **sides: Any) -> dict[str, Any]:
    return {"op": op, "urn": f"urn:pulumi:prod::accel::accel:aws:X${CE}::spot", **sides}


def changed(steps: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> list[Drift]:
    import json
    from pathlib import Path

    monkeypatch.setattr(drift_state, "_pulumi", lambda *_: json.dumps({"steps": steps}))
    return drift_state.changed_properties(Path(), "prod")


def test_numbers_are_shown_and_texts_never(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = {"detailedDiff": {"computeResources.maxVcpus": {}, "tags.token": {}, "computeResources.tags[0]": {}}}
    before = {"inputs": {"computeResources": {"maxVcpus": 8}, "tags": {"token": "s3cr3t-before"}}}
    after = {"inputs": {"computeResources": {"maxVcpus": 4}, "tags": {"token": "s3cr3t-after"}}}
    (found,) = changed([step("update", oldState=before, newState=after, **sides)], monkeypatch)
    assert found.text == f"{CE}: computeResources.maxVcpus 8 -> 4, computeResources.tags[0], tags.token"
    assert (found.what, found.name, found.weight) == ("property", "spot", "changed")


def test_what_is_gone_and_what_is_only_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = step("update", detailedDiff={"computeResources.desiredVcpus": {}})
    found = changed([step("same"), quiet, step("delete")], monkeypatch)
    assert [(each.what, each.weight) for each in found] == [("gone", "broken")]


@pytest.mark.parametrize(
    "after, weight",
    [(timedelta(days=15), None), (timedelta(days=13), "soon"), (timedelta(hours=3), "soon"), (-FORTNIGHT, "broken")],
)
def test_ends(after: timedelta, weight: str | None) -> None:
    found = ending("reservation", "kept", NOW + after, NOW, FORTNIGHT, "renew it")
    assert [each.weight for each in found] == ([weight] if weight else [])
    assert ending("reservation", "kept", None, NOW, FORTNIGHT, "") == []


def test_a_question_that_is_refused_is_unknown_and_keeps_what_was_found() -> None:
    first = Drift("pool", "l4", "broken", "is ERROR", "")

    def half() -> Iterator[Drift]:
        yield first
        raise CloudRefused("denied", "ask for it")

    assert attempt_check("nodes", half) == [first, Drift("not readable", "nodes", "unknown", "denied", "ask for it")]

    def nobody() -> Iterator[Drift]:
        raise NoCredentials("who are you")
        yield first

    with pytest.raises(NoCredentials):
        attempt_check("nodes", nobody)
    assert [each.weight for each in in_order([*attempt_check("nodes", half)[::-1], first])] == ["broken", "unknown"]


@pytest.mark.parametrize(
    "type_, found, texts",
    [
        ("gcp:container/nodePool:NodePool", {"status": "RUNNING"}, []),
        ("gcp:container/nodePool:NodePool", {"status": "ERROR", "statusMessage": "no room"}, ["is ERROR: no room"]),
        ("gcp:container/cluster:Cluster", {"status": "DEGRADED"}, ["is DEGRADED: no reason given"]),
        ("gcp:compute/instance:Instance", {"status": "RUNNING"}, []),
        ("gcp:tpu/v2QueuedResource:V2QueuedResource", {"state": {"state": "WAITING_FOR_RESOURCES"}}, []),
        ("gcp:tpu/v2Vm:V2Vm", {"state": "PREEMPTED"}, ["is PREEMPTED"]),
        (
            "gcp:compute/regionCommitment:RegionCommitment",
            {"endTimestamp": "2026-11-23T12:00:00Z", "autoRenew": True},
            [],
        ),
        (
            "gcp:compute/regionCommitment:RegionCommitment",
            {"endTimestamp": "2026-11-23T12:00:00Z"},
            ["ends 2026-11-23 12:00 UTC, in 24 hours"],
        ),
        (
            "gcp:compute/futureReservation:FutureReservation",
            {"status": {"procurementStatus": "DECLINED"}},
            ["is DECLINED"],
        ),
        ("gcp:vertex/aiPersistentResource:AiPersistentResource", {"state": "RUNNING"}, []),
    ],
)
def test_what_google_reports(type_: str, found: dict[str, Any], texts: list[str]) -> None:
    check = drift_google.KINDS[type_][2]
    assert [each.text for each in check("one", found, drift_google.When(NOW, FORTNIGHT))] == texts


def test_nothing_is_lost_whose_state_could_not_be_read() -> None:
    assert Stacks("accel", frozenset({"prod"})).holds("eipalloc-1")
    read = Stacks("accel", frozenset({"prod"}), frozenset({"eipalloc-1"}))
    assert read.holds("eipalloc-1") and not read.holds("eipalloc-2")
    assert read.own({"accel:project": "accel", "accel:stack": "prod"})
    assert not read.own({"accel:project": "other", "accel:stack": "prod"}) and not read.own({})
    assert not Stacks().own({})


def test_what_is_young_may_be_about_to_be_used() -> None:
    lost = Orphan("aws", "us-east-1", "volume", "vol-1", "", "", NOW - timedelta(minutes=30), None, "", "")
    assert lost.younger(NOW, 1) and not lost.younger(NOW, 0.25)
    row = lost.row(NOW)
    assert (row["age"], row["age_h"], row["usd_a_day"], row["created"]) == (
        "0.5 h",
        0.5,
        None,
        "2026-11-22T11:30:00+00:00",
    )
