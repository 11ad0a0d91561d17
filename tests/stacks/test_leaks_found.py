"""`stacks leaks` over whatever cloud: what keeps others from being found or deleted, and what does not."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import stacks.operations.drift.state as drift_state
import stacks.operations.leaks.search as leaks
from accel.diagnostics.errors import CloudRefused, NotFound
from stacks.operations.inventory.google import GoogleResource
from stacks.operations.leaks.google import MADE_BY_PULUMI, orphan
from stacks.operations.leaks.orphans import Orphan, Stacks, search_parts

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LABELS = {"accel-project": "accel", "accel-stack": "prod", MADE_BY_PULUMI: "true"}
PROD = Stacks("accel", frozenset({"prod"}), frozenset())


def test_a_part_that_is_refused_keeps_no_other() -> None:
    def refused() -> Iterator[str]:
        yield "first"
        raise CloudRefused("the API is not enabled")

    told: list[str] = []
    assert list(search_parts({"TPUs": refused, "disks": lambda: ["second"]}, told.append)) == ["first", "second"]
    assert told == ["TPUs: the API is not enabled"]


def lost(what: str, name: str, **more: Any) -> Orphan:
    return Orphan("aws", "us-east-1", what, name, "", "", None, 0.0, "", "", **more)


def test_one_that_is_not_deleted_keeps_no_other() -> None:
    deleted: list[str] = []

    def raises(error: Exception) -> Any:
        def act() -> None:
            raise error

        return act

    found = [
        lost("address", "last", delete=lambda: deleted.append("last")),
        lost("volume", "used", delete=raises(CloudRefused("VolumeInUse"))),
        lost("volume", "gone", delete=raises(NotFound("InvalidVolume.NotFound"))),
        lost("instance", "first", delete=lambda: deleted.append("first")),
        lost("queue", "only shown"),
    ]
    lines: list[str] = []
    with pytest.raises(CloudRefused, match=r"^volume used: VolumeInUse$"):
        lines.extend(leaks.delete(found))
    assert deleted == ["first", "last"]
    assert "volume gone is gone already" in lines


def test_everything_that_is_deleted_has_its_place_in_the_order() -> None:
    kinds = {"queued resource", "tpu", "instance", "group", "disk", "template", "address"}
    assert kinds | {"volume", "interface", "launch template"} == set(leaks.ORDER)
    assert leaks.ORDER.index("group") < leaks.ORDER.index("instance") < leaks.ORDER.index("disk")


@pytest.mark.parametrize(
    "deployment, held",
    [
        ({"resources": [{"urn": "urn:pulumi:prod::accel::t::one", "type": "t", "id": "eip-1"}]}, {"eip-1"}),
        ({"resources": []}, set()),
        ({}, set()),
        # What an update is just making is in no state yet.
        ({"resources": [], "pending_operations": [{"type": "creating"}]}, None),
    ],
)
def test_what_a_state_has(deployment: Any, held: set[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    monkeypatch.setattr(drift_state, "_pulumi", lambda *_: json.dumps({"deployment": deployment}))
    stack: Any = SimpleNamespace(path=Path("Pulumi.prod.yaml"), name="prod")
    assert leaks._state(stack, print).held == held  # pyright: ignore[reportPrivateUsage]


def found(**changed: Any) -> GoogleResource:
    given = {"kind": "instance", "name": "one", "zone": "z", "state": "RUNNING", "labels": LABELS, "created": NOW}
    made = {"machine": None, "spot": False, "api": "compute", "path": "projects/p/zones/z/instances/one", "query": {}}
    return GoogleResource(**{**given, **made, **changed})


@pytest.mark.parametrize(
    "each, stacks, lost",
    [
        (found(), PROD, True),
        (found(), Stacks("accel", PROD.names, frozenset({"projects/p/zones/z/instances/one"})), False),
        (found(), Stacks("accel", PROD.names), False),
        (found(), Stacks("other", PROD.names, frozenset()), False),
        (found(by_group=True), PROD, False),
        (found(labels={**LABELS, "goog-gke-node": ""}), PROD, False),
        (found(labels={**LABELS, MADE_BY_PULUMI: "false"}), PROD, False),
        (found(kind="disk", used=True), PROD, False),
        (found(kind="disk", used=False), PROD, True),
    ],
)
def test_what_a_stack_left_at_google(each: GoogleResource, stacks: Stacks, lost: bool) -> None:
    assert orphan(each, stacks) == lost
