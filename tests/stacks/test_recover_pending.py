"""What recover makes of a state: pending operations, what is done about each, and the state after it."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.diagnostics.errors import BadInput
from stacks.operations.recover.lookup import Candidate, MadeAgain, NotSought
from stacks.operations.recover.pending import Pending, order_entries, pending, resolve_pending
from stacks.operations.recover.plan import Decisions, Plan

VPC = "aws:ec2/vpc:Vpc"
PROVIDER = "urn:pulumi:dev::p::pulumi:providers:aws::on"
BEGAN = datetime(2026, 5, 1, 12, 0, 30, 500_000, tzinfo=UTC)


def urn(name: str, kind: str = VPC) -> str:
    return f"urn:pulumi:dev::p::{kind}::{name}"


def entry(name: str, kind: str = VPC, **more: Any) -> dict[str, Any]:
    tags = {"Name": name}
    made = {"urn": urn(name, kind), "custom": True, "type": kind, "inputs": {"tags": tags, "cidrBlock": "10.0.0.0/16"}}
    return {**made, "provider": f"{PROVIDER}::1", **more}


def state(*resources: dict[str, Any], creating: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    provider = {"urn": PROVIDER, "custom": True, "type": "pulumi:providers:aws", "id": "1", "inputs": {"region": "x"}}
    return {
        "resources": [{**provider, "outputs": {"region": "x"}}, *resources],
        "pending_operations": [{"type": "creating", "resource": each} for each in creating],
    }


def steps(deployment: dict[str, Any], *found: Candidate, said: Decisions | None = None) -> list[tuple[str, str]]:
    made = Plan(deployment, lambda operation: found, said or Decisions(), BEGAN).steps()
    return [(step.deed, step.id) for step in made]


def made(name: str, **more: Any) -> dict[str, Any]:
    return entry(name, id=f"vpc-{name}", outputs={"id": f"vpc-{name}", "name": name}, **more)


def test_what_nobody_found_is_cleared_and_what_is_proven_is_adopted() -> None:
    one = state(creating=[entry("a")])
    assert steps(one) == [("clear", "")]
    assert steps(one, Candidate("vpc-1", why="its name was made up for it")) == [("adopt", "vpc-1")]


def test_what_the_state_has_is_not_a_candidate() -> None:
    there = state(made("a"), creating=[entry("b")])
    assert steps(there, Candidate("vpc-a", why="labels")) == [("clear", "")]


def test_what_another_stack_has_is_no_candidate_and_what_nothing_proves_is_asked_for() -> None:
    one = state(creating=[entry("a")])
    assert steps(one, Candidate("vpc-1", strange=True)) == [("clear", "")]
    assert steps(one, Candidate("vpc-1")) == [("ask", "")]
    old, young = BEGAN - timedelta(seconds=31), BEGAN.replace(microsecond=0)
    assert steps(one, Candidate("vpc-1", made=old)) == [("ask", "")]
    assert steps(one, Candidate("vpc-1", made=young)) == [("adopt", "vpc-1")], "clouds tell time to the second"


def test_several_candidates_are_asked_for_unless_as_many_operations_wanted_the_same() -> None:
    two = (Candidate("vpc-1", why="labels"), Candidate("vpc-2", why="labels"))
    assert steps(state(creating=[entry("a")]), *two) == [("ask", "")]
    same = entry("b", inputs=entry("a")["inputs"])
    assert steps(state(creating=[entry("a"), same]), *two) == [("adopt", "vpc-1"), ("adopt", "vpc-2")]
    assert steps(state(creating=[entry("a"), same]), two[0]) == [("adopt", "vpc-1"), ("clear", "")]
    assert steps(state(creating=[entry("a"), entry("b")]), *two) == [("ask", ""), ("ask", "")]


def test_what_a_person_says_decides() -> None:
    two = (Candidate("vpc-1"), Candidate("vpc-2"))
    said = Decisions({"a": "vpc-2"}, frozenset({urn("b")}))
    assert steps(state(creating=[entry("a"), entry("b")]), *two, said=said) == [("adopt", "vpc-2"), ("clear", "")]


def test_what_a_person_says_has_to_be_about_one_pending_create() -> None:
    gateway = "aws:ec2/internetGateway:InternetGateway"
    one = state(made("b"), creating=[entry("a"), entry("a", gateway)])
    for said, text in (
        (Decisions({"c": "vpc-1"}), "--adopt c: no such create is pending; pending: a"),
        (Decisions(clear=frozenset({"a"})), f"--clear a: several have this name: {urn('a')}, {urn('a', gateway)}"),
        (Decisions({urn("a"): "vpc-b"}), "--adopt a=vpc-b: the state has it already"),
    ):
        with pytest.raises(BadInput, match=re.escape(text)):
            steps(one, said=said)
    assert steps(one, said=Decisions({urn("a"): "vpc-1"}, frozenset({urn("a", gateway)}))) == [
        ("adopt", "vpc-1"),
        ("clear", ""),
    ]


def test_what_its_cloud_is_still_at_is_waited_for() -> None:
    assert steps(state(creating=[entry("a")]), Candidate("vpc-1", "CREATING", "labels")) == [("wait", "vpc-1")]
    deleting = state(made("a"))
    deleting["pending_operations"] = [{"type": "deleting", "resource": made("a")}]
    assert steps(deleting, Candidate("vpc-a", "DELETING")) == [("wait", "")]
    assert steps(deleting, Candidate("vpc-a", "VALID")) == [("read", "")]
    assert steps(deleting) == [("read", "")]


def test_what_cannot_be_looked_for_is_asked_for_or_made_again() -> None:
    def plan(error: Exception) -> str:
        def find(operation: Pending) -> list[Candidate]:
            raise error

        return Plan(state(creating=[entry("a")]), find, Decisions(), None).steps()[0].deed

    assert plan(NotSought("no row")) == "ask"
    assert plan(MadeAgain()) == "clear"


def test_the_clouds_answer_in_the_state_needs_no_look() -> None:
    assert steps(state(creating=[made("a")])) == [("adopt", "vpc-a")]
    assert steps(state(made("a"), creating=[made("a")])) == [("drop", "")], "only the mark was left"


def test_what_was_made_again_since_is_left_for_deletion() -> None:
    again = state(made("a", protect=True), creating=[entry("a", protect=True, retainOnDelete=True)])
    (operation,) = pending(again)
    assert steps(again, Candidate("vpc-1", why="labels")) == [("adopt", "vpc-1")]
    after = resolve_pending(again, [(operation, "vpc-1")])
    assert [(each["id"], each.get("delete", False)) for each in after["resources"][1:]] == [
        ("vpc-a", False),
        ("vpc-1", True),
    ]
    assert after["resources"][1]["protect"], "what is in use stays protected"
    assert not after["resources"][2]["protect"] and not after["resources"][2]["retainOnDelete"], "a second one goes"


def test_what_can_be_there_once_only_is_what_the_state_has() -> None:
    same = state(made("a"), creating=[entry("a")])
    other = state(made("a"), creating=[entry("a", inputs={"cidrBlock": "10.1.0.0/16"})])
    assert steps(same, Candidate("vpc-1", why="one only", only=True)) == [("drop", "")]
    assert steps(other, Candidate("vpc-1", why="one only", only=True)) == [("ask", "")], "it would be in the way"
    assert steps(other, Candidate("vpc-1", why="written over", over=True)) == [("drop", "")]


def test_what_the_program_names_is_not_deleted_under_that_name() -> None:
    """The next `up` makes the name again, and then would delete what is under it."""
    named = state(made("a"), creating=[entry("a", inputs={"name": "jobs"})])
    assert steps(named, Candidate("vpc-1", why="time")) == [("ask", "")]
    made_up = state(made("a"), creating=[entry("a", inputs={"name": "jobs-0a1b2c3", "__defaults": ["name"]})])
    assert steps(made_up, Candidate("vpc-1", why="name")) == [("adopt", "vpc-1")]
    kind = "kubernetes:core/v1:ConfigMap"
    for marks, deed in (({}, "ask"), ({"pulumi.com/autonamed": "true"}, "adopt")):
        inputs = {"metadata": {"name": "jobs", "annotations": marks}}
        cluster = state(entry("a", kind, id="default/x"), creating=[entry("a", kind, inputs=inputs)])
        assert steps(cluster, Candidate("default/jobs", why="time"))[0][0] == deed


def test_a_replacement_begins_anew_unless_the_old_one_is_gone() -> None:
    other = entry("a", inputs={"cidrBlock": "10.1.0.0/16"})
    before = state(made("a"), made("on-it", dependencies=[urn("a")]), creating=[other])
    (operation,) = pending(before)
    after = resolve_pending(before, [(operation, "vpc-new")])
    assert [(each["id"], each.get("delete", False)) for each in after["resources"][1:]] == [
        ("vpc-a", False),
        ("vpc-on-it", False),
        ("vpc-new", True),
    ], "perhaps the one of the state is younger: nothing tells"
    assert len(before["resources"]) == 3, "what was given is as it was"
    gone = state(made("a", pendingReplacement=True), creating=[other])
    assert steps(gone, Candidate("vpc-new", why="labels")) == [("adopt", "vpc-new")]
    assert [each["id"] for each in resolve_pending(gone, [(pending(gone)[0], "vpc-new")])["resources"]] == [
        "1",
        "vpc-new",
    ]


def test_what_comes_from_what_the_state_has_made() -> None:
    read = made("read", external=True)
    both = {"vpcId": [urn("a")], "subnetId": [urn("read"), urn("gone")]}
    (operation,) = pending(state(made("a"), read, creating=[entry("x", propertyDependencies=both)]))
    assert operation.own == {"vpcId"}


def test_two_runs_that_were_killed_at_the_same_resource_have_made_two() -> None:
    twice = state(creating=[entry("a"), entry("a")])
    two = (Candidate("vpc-1", why="labels"), Candidate("vpc-2", why="labels"))
    assert steps(twice, *two) == [("adopt", "vpc-1"), ("adopt", "vpc-2")]
    assert steps(twice, two[0]) == [("adopt", "vpc-1"), ("clear", "")]
    one, other = pending(twice)
    after = resolve_pending(twice, [(one, "vpc-1"), (other, "vpc-2")])
    assert [(each["id"], each.get("delete", False)) for each in after["resources"][1:]] == [
        ("vpc-1", False),
        ("vpc-2", True),
    ]


def test_what_is_in_no_cloud_is_dropped() -> None:
    component = {"urn": urn("c", "test:Ground"), "type": "test:Ground", "custom": False}
    provider = {"urn": urn("p", "pulumi:providers:aws"), "type": "pulumi:providers:aws", "custom": True}
    assert steps(state(creating=[component, provider]), Candidate("x", why="labels")) == [("drop", ""), ("drop", "")]


def test_what_the_state_does_not_have_any_more_is_not_named() -> None:
    """A `destroy` after the killed `up` keeps its pending creates."""
    pointing = entry(
        "a", parent=urn("gone"), dependencies=[urn("gone"), PROVIDER], propertyDependencies={"x": [urn("gone")]}
    )
    left = state(creating=[pointing])
    (made_now,) = resolve_pending(left, [(pending(left)[0], "vpc-1")])["resources"][1:]
    assert "parent" not in made_now
    assert (made_now["dependencies"], made_now["propertyDependencies"]) == ([PROVIDER], {"x": []})
    nowhere = {**left, "resources": []}
    assert steps(nowhere, Candidate("vpc-1", why="labels")) == [("ask", "")]
    assert steps(nowhere, said=Decisions(clear=frozenset({"a"}))) == [("clear", "")]


def test_what_was_entered_and_not_read_is_found_again() -> None:
    after = resolve_pending(state(creating=[entry("a")]), [(Pending("creating", entry("a")), "vpc-1")])
    assert after["pending_operations"] == []
    assert [(each.doing, each.name) for each in pending(after)] == [("adopting", "a")]
    after["resources"][1]["outputs"] = {"id": "vpc-1"}
    assert pending(after) == []


@given(st.permutations(range(6)), st.data())
def test_each_resource_comes_after_what_it_names(order: list[int], data: st.DataObject) -> None:
    entries = [
        entry(str(at), dependencies=[urn(str(on)) for on in data.draw(st.sets(st.integers(0, 5))) if on < at])
        for at in range(6)
    ]
    placed = order_entries([entries[at] for at in order])
    assert sorted(each["urn"] for each in placed) == sorted(each["urn"] for each in entries)
    at = {each["urn"]: n for n, each in enumerate(placed)}
    assert all(at[on] < at[each["urn"]] for each in placed for on in each["dependencies"])
    assert order_entries(placed) == placed, "what is in order stays as it is"
