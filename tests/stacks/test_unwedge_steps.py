"""What `stacks unwedge` plans, by the environment's status and state."""

from typing import Any, cast

import pytest

from stacks.operations.unwedge.environment import Diagnosis
from stacks.operations.unwedge.removal import steps

ARN = "arn:aws:batch:us-east-1:210020003000:compute-environment/stuck"


class NoRoles:
    """IAM without a role that was made for an environment."""

    def get_paginator(self, name: str) -> Any:
        return self

    def paginate(self, **arguments: Any) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("status", "state", "disables"),
    [("INVALID", "ENABLED", True), ("INVALID", "DISABLED", False), ("DELETING", "ENABLED", False)],
)
def test_an_environment_is_disabled_unless_it_is_or_is_being_deleted(status: str, state: str, disables: bool) -> None:
    one = {"computeEnvironmentName": "stuck", "computeEnvironmentArn": ARN, "status": status, "state": state}
    region = cast(Any, type("Region", (), {"iam": NoRoles()})())
    texts = [each.text for each in steps(region, Diagnosis(one, (), (), ()), 1, None)]
    assert any(text.startswith("disable it") for text in texts) is disables
    assert texts[-1] == "delete it, and wait until it is gone"
