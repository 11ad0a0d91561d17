"""The table of AWS permissions: every type that a component makes is in it, with actions that IAM has."""

import json
import re
from importlib.resources import files
from itertools import chain
from typing import Any

import pytest

from accel.catalog.aws_permissions import aws_permissions

from .components import MAKERS, alone

KNOWN: dict[str, Any] = json.loads((files("cfnlint") / "data" / "AdditionalSpecs" / "Policies.json").read_text())
"""Every action of IAM and the kinds of resources that it knows, by cfn-lint, which comes with moto."""
PERMISSIONS = list(chain.from_iterable(aws_permissions().values()))


@pytest.mark.parametrize("key", sorted(MAKERS))
def test_every_type_has_its_permissions(key: str) -> None:
    made = alone(MAKERS[key])[1]
    types = {one.type for one in made.registrations if one.type.startswith("aws:")}
    assert types <= aws_permissions().keys()


def test_every_type_can_be_made_and_read() -> None:
    for kind, rows in aws_permissions().items():
        assert {"create", "read"} <= {row.operation for row in rows}, kind


@pytest.mark.parametrize("action", sorted({action for row in PERMISSIONS for action in row.actions}))
def test_every_action_exists(action: str) -> None:
    assert re.fullmatch(r"[a-z0-9]+:[A-Z][A-Za-z]+", action)
    service, _, name = action.partition(":")
    assert name.lower() in KNOWN[service]["Actions"]


def test_an_action_has_a_resource_where_iam_knows_one() -> None:
    """Of EC2 alone no ARN is known before it exists."""
    for row in PERMISSIONS:
        for service, _, name in (action.partition(":") for action in row.actions):
            known = bool(KNOWN[service]["Actions"][name.lower()].get("Resources"))
            assert known == bool(row.resource) or service == "ec2", (row, name)


def test_tags_of_a_function_can_be_read() -> None:
    """GetFunction answers without tags to who may not list them, and each preview would then put them back. Source:
    https://docs.aws.amazon.com/lambda/latest/api/API_GetFunction.html"""
    reads = [one for one in aws_permissions()["aws:lambda/function:Function"] if one.operation == "read"]
    assert "lambda:ListTags" in {action for one in reads for action in one.actions}
