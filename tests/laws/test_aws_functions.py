"""Laws for every component that deploys a Lambda function."""

import json
from typing import Any

import pytest

from tests.support import memory

from .components import MAKERS, alone
from .test_components import Maker

FUNCTION = "aws:lambda/function:Function"


FUNCTIONS = {name: MAKERS[name] for name in ("budget-stop", "monitoring")}


def statements(seen: memory.Recorder, role: str) -> list[dict[str, Any]]:
    inline = [one.inputs for one in seen.of("iam/rolePolicy:RolePolicy") if one.inputs["role"] == role]
    return [each for one in inline for each in json.loads(one["policy"])["Statement"]]


def test_the_law_sees_every_function() -> None:
    deployed = {name for name, make in MAKERS.items() if alone(make)[1].of(FUNCTION)}
    assert deployed == set(FUNCTIONS)


@pytest.mark.parametrize("make", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_reserves_no_concurrency(make: Maker) -> None:
    """An account that was just opened has ten executions at once, and none of them can be reserved."""
    for function in alone(make)[1].of(FUNCTION):
        assert function.inputs.get("reservedConcurrentExecutions", -1) == -1, function.name


@pytest.mark.parametrize("make", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_may_write_to_a_log_group_that_the_stack_keeps(make: Maker) -> None:
    seen = alone(make)[1]
    groups = {f"{one.name}-0a1b2c3": one for one in seen.of("cloudwatch/logGroup:LogGroup")}
    roles = {f"arn:{one.type}:{one.name}": f"{one.name}-id" for one in seen.of("iam/role:Role")}
    for function in seen.of(FUNCTION):
        group = groups[function.inputs["loggingConfig"]["logGroup"]]
        assert group.inputs["retentionInDays"] > 0
        allowed = [
            each
            for each in statements(seen, roles[function.inputs["role"]])
            if {"logs:CreateLogStream", "logs:PutLogEvents"} <= set(each["Action"])
        ]
        assert [each["Resource"] for each in allowed] == [f"arn:{group.type}:{group.name}:*"], function.name
