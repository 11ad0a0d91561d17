"""What AWS refuses for its size or its characters, in its words."""

import base64
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.sandbox.test_new_account import archive


def refusal(call: Any, **given: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**given)
    return str(refused.value)


@pytest.mark.parametrize(("tier", "most"), [("Standard", 4096), ("Advanced", 8192), ("Intelligent-Tiering", 8192)])
def test_a_parameter_has_a_size(aws: Any, tier: str, most: int) -> None:
    ssm, name = aws.client("ssm"), aws.name("/a/parameter")
    ssm.put_parameter(Name=name, Type="String", Tier=tier, Value="x" * most)
    given = {"Name": name, "Type": "String", "Tier": tier, "Overwrite": True, "Value": "x" * (most + 1)}
    assert f"support a maximum parameter value of {most} characters" in refusal(ssm.put_parameter, **given)


def test_an_event_pattern_has_a_size(aws: Any) -> None:
    events, name = aws.client("events"), aws.name("rule")
    within = json.dumps({"source": ["x" * (2048 - len('{"source": [""]}'))]})
    events.put_rule(Name=name, EventPattern=within)
    assert "LimitExceeded" in refusal(events.put_rule, Name=name, EventPattern=within.replace("x", "xx", 1))


def test_user_data_has_a_size(aws: Any) -> None:
    ec2 = aws.client("ec2")

    def template(size: int) -> dict[str, Any]:
        data = base64.b64encode(b"x" * size).decode()
        return {"LaunchTemplateName": aws.name("template"), "LaunchTemplateData": {"UserData": data}}

    made = template(16_384)
    ec2.create_launch_template(**made)
    text = "User data is limited to 16384 bytes"
    assert text in refusal(ec2.create_launch_template, **template(16_385))
    again = {**template(16_385), "LaunchTemplateName": made["LaunchTemplateName"]}
    assert text in refusal(ec2.create_launch_template_version, **again)


def test_variables_of_a_function_have_a_size(aws: Any) -> None:
    role = aws.client("iam").create_role(RoleName=aws.name("runs"), AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    client, name = aws.client("lambda"), aws.name("function")

    def variables(size: int) -> dict[str, Any]:
        return {"Variables": {"A": "x" * (size - len('{"A":""}'))}}

    given = {"Runtime": "python3.13", "Role": role, "Handler": "index.handler", "Code": {"ZipFile": archive()}}
    client.create_function(FunctionName=name, **given, Environment=variables(4096))
    text = "exceeded the 4KB limit"
    assert text in refusal(client.update_function_configuration, FunctionName=name, Environment=variables(4097))
    other = aws.name("function")
    assert text in refusal(client.create_function, FunctionName=other, **given, Environment=variables(4097))


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("team", "a, b", "satisfy regular expression pattern"),
        ("te;am", "a", "satisfy regular expression pattern"),
        ("aws:team", "a", "aws: prefixed tag key names are not allowed"),
    ],
)
def test_tags_of_a_role_have_an_alphabet(aws: Any, key: str, value: str, text: str) -> None:
    iam, role = aws.client("iam"), {"AssumeRolePolicyDocument": "{}"}
    iam.create_role(RoleName=aws.name("role"), **role, Tags=[{"Key": "Team:1", "Value": "Zürich + a"}])
    assert text in refusal(iam.create_role, RoleName=aws.name("role"), **role, Tags=[{"Key": key, "Value": value}])
