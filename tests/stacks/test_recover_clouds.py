"""How what a killed run may have made is looked for, and what proves that it was made by it."""

import re
from pathlib import Path
from typing import Any

import pytest

from accel.diagnostics.errors import NoCredentials
from stacks.operations.recover import aws, google
from stacks.operations.recover.lookup import NotSought, matching, proof
from stacks.operations.recover.pending import Pending

SECRET = "4dabf18193072939515e22adb298388d"
"""The engine's mark of what is more than its value."""


def test_a_description_is_held_against_the_inputs_that_both_have() -> None:
    assert matching(
        {"cidrBlock": "10.0.0.0/16", "fromPort": 22}, {"id": "x", "cidrBlock": "10.0.0.0/16", "fromPort": 22}
    )
    assert matching({}, {"id": "x", "cidrBlock": "10.0.0.0/16"})
    assert not matching({"cidrBlock": "10.0.0.0/16"}, {"id": "x", "cidrBlock": "10.1.0.0/16"})
    assert not matching({"cidrBlock": "10.0.0.0/16"}, {"id": "x", "cidrBlock": None})
    with pytest.raises(NotSought, match="its value is a secret"):
        matching({"value": {SECRET: "1b47061264138c4ac30d75fd1eb44270"}}, {"id": "x", "value": "a"})


def operation(kind: str = "aws:ec2/vpc:Vpc", own: str = "", **inputs: Any) -> Pending:
    urn = f"urn:pulumi:dev::p::{kind}::a"
    return Pending("creating", {"urn": urn, "type": kind, "custom": True, "inputs": inputs}, frozenset({own}))


def test_what_proves_that_something_is_what_was_made() -> None:
    def why(made: Pending, part: bool = False, **wanted: str) -> tuple[bool, bool]:
        mine = wanted or {"Name": "a", "accel:stack": "dev"}
        text, strange = proof(made, part, False, frozenset({"vpcId"}), mine, {"Name": "a", "accel:stack": "prod"})
        return bool(text), strange

    assert why(operation(own="vpcId"), part=True) == (True, False)
    assert why(operation(), part=True) == (False, True), "another stack's network may have had it before"
    assert why(operation(own="vpcId")) == (False, True), "the labels of another stack"
    assert why(operation(), Name="a") == (False, False), "a label that says nothing of the stack"
    assert why(operation(), **{"Name": "a", "accel:stack": "prod"}) == (True, False)
    assert why(operation(name="jobs", __defaults=["name"])) == (False, False), "a project may leave digits out"
    assert why(operation(name="jobs-0a1b2c3", __defaults=["name"])) == (True, False)
    assert why(operation(name="jobs-0a1b2c3")) == (False, False)


def test_what_is_written_over_under_its_own_name_is_proven_by_what_holds_it_under_another() -> None:
    def why(made: Pending) -> str:
        return proof(made, False, True, frozenset({"role", "name"}), {}, None)[0]

    fixed = operation(own="role", name="jobs", role="r-1")
    assert "write over" in why(fixed)
    assert "made up for it" in why(fixed.called("jobs-7777777"))
    assert why(operation(name="jobs", role="of-others").called("jobs-7777777")) == ""


def test_accounts_that_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sts:
        def get_caller_identity(self) -> dict[str, str]:
            return {"Account": "123456789012"}

    def find(settings: dict[str, Any]) -> None:
        cloud = aws.Aws(frozenset(), lambda operation: {"region": "eu-west-1", **settings})
        monkeypatch.setattr(cloud, "_client", lambda service, region: Sts())
        cloud.find(operation())

    with pytest.raises(NoCredentials, match="of account 123456789012, the stack's resources of 210987654321"):
        find({"allowedAccountIds": '["210987654321"]'})
    with pytest.raises(NotSought, match="its provider signs in by assumeRoles"):
        find({"assumeRoles": '[{"roleArn": "arn:aws:iam::210987654321:role/up"}]'})


def test_values_of_inputs_that_are_missing_or_secret_are_said() -> None:
    assert aws.fill({"Filters": [{"Values": ["$vpcId"]}]}, {"vpcId": "vpc-1"}) == {"Filters": [{"Values": ["vpc-1"]}]}
    for hidden in ({}, {"vpcId": {SECRET: "1b47061264138c4ac30d75fd1eb44270"}}):
        with pytest.raises(NotSought, match="its vpcId is not in the state"):
            aws.fill(["$vpcId"], hidden)


def types(*tables: Path) -> set[str]:
    import yaml

    return {token for table in tables for token in yaml.safe_load(table.read_text()) if token != "_"}


NAMED_BY_GOOGLE = {
    "gcp:billing/budget:Budget",
    "gcp:monitoring/notificationChannel:NotificationChannel",
    "gcp:vertex/aiTensorboard:AiTensorboard",
}
"""The provider reads these by a name that Google makes up, which no state of a killed create has."""
UNSOUGHT = {"gcp:compute/attachedDisk:AttachedDisk", *NAMED_BY_GOOGLE}


def test_every_type_that_the_sandbox_makes_is_looked_for() -> None:
    """The sandbox's tables are what components make."""
    plugins = Path(__file__).parents[2] / "sandbox" / "plugins"
    assert types(*(plugins / "aws" / "tables").glob("*.yaml")) - aws.rows().keys() == set()
    assert types(plugins / "gcp" / "table.yaml") - google.rows().keys() == UNSOUGHT


def test_rows_name_calls_and_fields_that_botocore_has() -> None:
    import boto3
    import jmespath

    rows = [(token, row) for token, row in aws.rows().items()]
    rows += [(token, row.of({name: "any"})) for token, row in rows for name in row.where]
    for token, row in rows:
        ((call, parameters),) = row.look.items()
        service, _, operation = call.partition(".")
        client: Any = boto3.client(service, region_name="us-east-1")  # pyright: ignore[reportCallIssue, reportArgumentType]
        model = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[operation])
        assert parameters.keys() <= model.input_shape.members.keys(), token
        jmespath.compile(row.found.replace("$name", "x"))
        named = {word for word in re.findall(r"[A-Za-z]+", row.found.partition("{")[0]) if word != "contains"}
        assert named & model.output_shape.members.keys() or row.found.startswith("[{"), token


def test_accounts_are_those_of_arns() -> None:
    arn = "arn:aws:iam::210020003000:role/r"
    assert aws.accounts({"resources": [{"type": "aws:iam/role:Role", "outputs": {"arn": arn}}]}) == {"210020003000"}
    assert aws.accounts({"resources": []}) == frozenset()


def test_a_cluster_is_asked_with_the_token_of_googles_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """By whichever case the header is written in: google-auth's is small."""
    for name in ("authorization", "Authorization"):
        monkeypatch.setattr("stacks.operations.recover.google.auth_headers", lambda name=name: {name: "Bearer abc"})
        assert google.token() == "abc"
