"""What the state does not know is found by what a preview would make, and only what is proven is taken for ours."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accel.diagnostics.errors import CloudRefused
from stacks.operations.pulumi_command import UNKNOWN
from stacks.operations.recover import aws, google
from stacks.operations.recover.lookup import Candidate, NotSought
from stacks.operations.recover.pending import Pending
from stacks.operations.recover.plan import Decisions, Step, Unknown, began, missing_lines, planned_resources

from .test_recover_pending import BEGAN, PROVIDER, entry, made, state, urn

ROLE = "aws:iam/role:Role"


def preview(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"steps": [{"op": "create", "urn": each["urn"], "newState": each} for each in entries]}


def role(name: str, digits: str = "0a1b2c3", **more: Any) -> dict[str, Any]:
    return entry(name, ROLE) | {"inputs": {"name": f"{name}-{digits}", "__defaults": ["name"], **more}}


def steps(
    deployment: dict[str, Any],
    plan: dict[str, Any],
    there: Mapping[str, Sequence[Candidate]],
    said: Decisions | None = None,
    since: datetime | None = None,
) -> list[Step]:
    """`there`: what is found under each name."""

    def find(operation: Pending) -> Sequence[Candidate]:
        return there.get(operation.inputs.get("name", ""), ())

    unknown = Unknown(deployment, find, lambda operation: list(there), said or Decisions(), since)
    return unknown.steps(planned_resources(plan, deployment))


def test_what_was_made_under_other_digits_is_adopted_under_its_name() -> None:
    labels = "it has the labels of this stack"
    there = {
        "jobs-7777777": [Candidate("jobs-7777777", why=labels)],
        "jobs-two-1234567": [Candidate("jobs-two-1234567", why=labels)],
        "jobs": [Candidate("jobs", why=labels)],
        "other-7654321": [Candidate("other-7654321", why=labels)],
    }
    (step,) = steps(state(), preview(role("jobs")), there)
    assert (step.deed, step.id, step.operation.inputs["name"]) == ("adopt", "jobs-7777777", "jobs-7777777")
    assert str(step) == f"creating {ROLE} jobs: adopt jobs-7777777, which the state does not know: {labels}"
    assert not step.operation.made_up, "a name that the cloud has proves nothing"


def test_what_the_state_has_is_no_candidate() -> None:
    known = role("other", "7777777") | {"id": "jobs-7777777", "outputs": {"id": "jobs-7777777"}}
    there = {"jobs-7777777": [Candidate("jobs-7777777", why="labels")]}
    assert steps(state(known), preview(role("jobs")), there) == []


def test_of_what_nothing_proves_a_person_is_asked() -> None:
    there = {"jobs-7777777": [Candidate("jobs-7777777", made=BEGAN)]}
    (asked,) = steps(state(), preview(role("jobs")), there)
    assert asked.deed == "ask" and "nothing proves that this stack's last run made jobs-7777777" in asked.text
    assert steps(state(), preview(role("jobs")), there, since=BEGAN)[0].deed == "adopt", (
        "made while that run was at work"
    )
    assert steps(state(), preview(role("jobs")), there, Decisions(clear=frozenset({"jobs"}))) == []
    (given,) = steps(state(), preview(role("jobs")), there, Decisions({"jobs": "jobs-7777777"}))
    assert (given.deed, given.operation.inputs["name"]) == ("adopt", "jobs-7777777")
    two = there | {"jobs-1111111": [Candidate("jobs-1111111", made=BEGAN)]}
    (several,) = steps(state(), preview(role("jobs")), two, since=BEGAN)
    assert (several.deed, several.text) == ("ask", "several are like it: jobs-7777777, jobs-1111111")


def test_what_a_dead_provider_put_into_what_the_stack_has_made_is_adopted() -> None:
    """Of a policy inside a role nothing tells but the role and the name; another would not be written over it."""
    kind = "aws:iam/rolePolicy:RolePolicy"
    policy = entry("jobs", kind) | {
        "inputs": {"name": "jobs-0a1b2c3", "role": "r-1", "__defaults": ["name"]},
        "propertyDependencies": {"role": [urn("r", ROLE)]},
    }
    there = {"jobs-7777777": [Candidate("r-1:jobs-7777777", why="it is in what this stack has made", over=True)]}
    (step,) = steps(state(), preview(policy), there)
    assert (step.deed, step.id) == ("adopt", "r-1:jobs-7777777")
    fixed = policy | {"inputs": {"name": "jobs-7777777", "role": "r-1"}}
    assert steps(state(), preview(fixed), there) == [], "what is written over, the next up writes"


def test_what_is_strange_written_over_or_not_listed_is_left_to_the_next_up() -> None:
    there = {"jobs-7777777": [Candidate("jobs-7777777", why="x", strange=True)]}
    assert steps(state(), preview(role("jobs")), there) == []

    def unlisted(operation: Pending) -> Sequence[str]:
        raise NotSought("no row")

    made_up = planned_resources(preview(role("jobs")), state())
    assert Unknown(state(), lambda operation: (), unlisted, Decisions(), None).steps(made_up) == []


def test_what_is_looked_for_is_what_a_preview_would_make() -> None:
    hidden = entry("a", vpcId=1) | {"inputs": {"vpcId": UNKNOWN, "value": "[secret]", "deep": [{"x": UNKNOWN}], "n": 1}}
    component = {"urn": urn("c", "test:Ground"), "type": "test:Ground", "custom": False}
    elsewhere = entry("b") | {"provider": "urn:pulumi:dev::p::pulumi:providers:aws::new::1"}
    waits = entry("w")
    (found,) = planned_resources(preview(hidden, component, elsewhere, waits), state(creating=[waits]))
    assert (found.name, found.inputs, found.resource["provider"]) == ("a", {"n": 1}, f"{PROVIDER}::1")
    assert (
        planned_resources({"steps": [{"op": "same", "newState": hidden}]}, state())
        == planned_resources({}, state())
        == []
    )


@pytest.mark.parametrize("subnet", [UNKNOWN, "subnet-1"])
def test_what_depends_on_what_is_not_made_is_not_there(subnet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An association of a subnet that is still to be made is not the one that its table has."""
    kind, table = "aws:ec2/routeTableAssociation:RouteTableAssociation", "aws:ec2/routeTable:RouteTable"
    wanted = entry("a", kind) | {
        "inputs": {"routeTableId": "rtb-1", "subnetId": subnet},
        "propertyDependencies": {"routeTableId": [urn("t", table)]},
    }
    deployment = state(entry("t", table) | {"id": "rtb-1", "outputs": {"id": "rtb-1"}})
    (planned,) = planned_resources(preview(wanted), deployment)
    cloud = aws.Aws(frozenset(), lambda operation: {"region": "eu-west-1"})
    monkeypatch.setattr(cloud, "_checked", lambda *asked: "123456789012")
    there = {"Associations": [{"RouteTableAssociationId": "rtbassoc-1", "SubnetId": "subnet-1"}]}
    monkeypatch.setattr(cloud, "_answer", lambda *asked: {"RouteTables": [there]})
    assert [each.id for each in cloud.find(planned)] == (["rtbassoc-1"] if subnet == "subnet-1" else [])


def test_what_a_pending_create_takes_is_taken() -> None:
    there = {"jobs-7777777": [Candidate("jobs-7777777", why="labels")]}
    known = Unknown(state(), lambda each: there[each.inputs["name"]], lambda each: list(there), Decisions(), None)
    operations = planned_resources(preview(role("jobs")), state())
    (pending,) = known.steps(operations)
    assert known.steps(operations, [pending]) == []


def test_what_is_gone_is_named() -> None:
    there = state(made("a"))
    assert missing_lines(preview(entry("a"), entry("b")), there) == [
        "aws:ec2/vpc:Vpc a: its cloud does not have it any more; the state forgets it"
    ]
    assert steps(there, preview(entry("a")), {"": [Candidate("vpc-2", why="labels")]}) == [], (
        "the next refresh forgets it"
    )


@pytest.mark.parametrize(
    ("history", "written", "doubted"),
    [
        ([], 0, None),
        ([("update", "succeeded", 0)], 1, None),
        ([("update", "succeeded", 0)], 3, 60),
        ([("update", "failed", 0)], 0, 0),
        ([("update", "failed", 0)], 9, 0),
        ([("refresh", "succeeded", 0), ("destroy", "failed", -500)], 0, -500),
        ([("refresh", "failed", 0), ("update", "succeeded", -500)], 0, None),
    ],
)
def test_a_run_is_in_doubt_that_failed_or_left_no_trace(
    history: list[tuple[str, str, int]], written: int, doubted: int | None
) -> None:
    """A run takes a minute here; `written`: seconds after the end of the last that is known."""

    def at(seconds: int) -> datetime:
        return datetime(2026, 11, 23, 12, tzinfo=UTC) + timedelta(seconds=seconds)

    told = [
        {"kind": kind, "result": result, "startTime": at(begun).isoformat(), "endTime": at(begun + 60).isoformat()}
        for kind, result, begun in history
    ]
    assert began(told, at(60 + written)) == (None if doubted is None else at(doubted))


def test_lists_of_names_are_calls_that_botocore_has() -> None:
    import boto3
    import jmespath

    for token, row in aws.rows().items():
        for call, found in row.names.items():
            service, _, operation = call.partition(".")
            client: Any = boto3.client(service, region_name="us-east-1")  # pyright: ignore[reportCallIssue, reportArgumentType]
            model = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[operation])
            assert re.split(r"\W", found)[0] in model.output_shape.members, token
            assert row.holder.keys() <= model.input_shape.members.keys(), token
            jmespath.compile(found)


def test_every_row_that_asks_for_a_name_has_a_list_of_names() -> None:
    """Also where the kind is written over: under a name that is made up it is not."""
    named = {token for token, row in aws.rows().items() if "$name" in str(row.look) and not row.part}
    assert {token for token in named if not aws.rows()[token].names} == set()
    unlisted = {
        token
        for token, row in google.rows().items()
        if "{name}" in row.path and not (row.path.endswith("/{name}") and not row.at)
    }
    assert unlisted == {"gcp:vertex/aiPersistentResource:AiPersistentResource"}


def test_what_may_not_be_looked_for_is_asked_for() -> None:
    def refusing(message: str) -> list[Step]:
        def find(operation: Pending) -> Sequence[Candidate]:
            raise CloudRefused(message)

        operations = planned_resources(preview(entry("a")), state())
        return Unknown(state(), find, lambda operation: (), Decisions(), None).steps(operations)

    (asked,) = refusing("iam list_roles: AccessDenied")
    assert (asked.deed, asked.text) == ("ask", "may be there: iam list_roles: AccessDenied")
    assert refusing("compute get x: the API is not enabled: gcloud services enable compute") == []
