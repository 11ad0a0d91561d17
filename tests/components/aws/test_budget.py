"""What the components of budgets send, and what keeps an update from undoing a stop."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pulumi
import pytest

import components.aws.stop_hooks as stop_hooks
from components.aws.budget import BudgetSpec, lines
from components.aws.budget_function import SETTINGS, Settings
from components.aws.budget_stop import archive
from tests.laws import components as make
from tests.support import memory

MAIL = {"emails": ["ml@company.com"]}
MINE = "arn:aws:sns:us-east-1:111122223333:mine"


def budget(**values: Any) -> dict[str, Any]:
    """What AWS Budgets is sent."""
    (sent,) = memory.run(lambda: make.budget("gpus", **values)).of("budgets/budget:Budget")
    return sent.inputs


def told(of: dict[str, Any]) -> dict[tuple[str, float], tuple[list[str], list[str]]]:
    """Addresses and topics by basis and percent."""
    return {
        (one["notificationType"], one["threshold"]): (
            one.get("subscriberEmailAddresses") or [],
            one.get("subscriberSnsTopicArns") or [],
        )
        for one in of["notifications"]
    }


def test_people_are_told_at_shares_that_are_sent_as_percents() -> None:
    found = budget(thresholds={"actual": [0.5, 0.07]})
    everybody = (["ml@company.com"], [])
    assert told(found) == {("ACTUAL", 50): everybody, ("ACTUAL", 7): everybody, ("FORECASTED", 100): everybody}
    assert (found["limitAmount"], found["limitUnit"]) == ("1000", "USD")
    assert "costFilters" not in found and "costTypes" not in found


def test_the_line_that_stops_has_the_functions_topic() -> None:
    both = {**MAIL, "sns_topic_arn": MINE}
    found = told(budget(recipients=both, thresholds={"actual": [0.5], "forecast": []}, stop={"at": 1.2}))
    assert list(found) == [("ACTUAL", 50), ("ACTUAL", 120)]
    assert found["ACTUAL", 50] == (["ml@company.com"], [MINE])
    assert found["ACTUAL", 120] == (["ml@company.com"], ["arn:aws:sns/topic:Topic:gpus"])


def test_the_line_that_stops_is_there_once() -> None:
    spec = BudgetSpec.model_validate({"amount": 1, "recipients": MAIL, "stop": {"at": 1.0}})
    assert lines(spec) == [("actual", 0.5), ("actual", 0.9), ("actual", 1.0), ("forecast", 1.0)]


def test_filters_are_spelt_as_the_bill_does() -> None:
    filters = {"tags": {"team": ["ml", "vision"]}, "services": ["Amazon EC2"], "accounts": ["111122223333"]}
    found = {one["name"]: one["values"] for one in budget(filters=filters, credits=False)["costFilters"]}
    assert found == {
        "TagKeyValue": ["user:team$ml", "user:team$vision"],
        "Service": ["Amazon EC2"],
        "LinkedAccount": ["111122223333"],
    }


def test_the_function_is_told_what_it_may_stop() -> None:
    seen = memory.run(lambda: make.budget_stop("stop"))
    (function,) = seen.of("lambda/function:Function")
    told = Settings(**json.loads(function.inputs["environment"]["variables"][SETTINGS]))
    assert told.budgets == {"gpus-1a2b3c4": {"at": 1.0, "basis": "actual", "budget": "gpus", "running_after_s": 3600}}
    assert told.topics == {"arn:aws:sns:us-east-1:111122223333:gpus": "gpus-1a2b3c4"}
    assert MINE in told.told and len(told.told) == 2
    # An account has ten runs at once in the beginning, and none of them can be set aside.
    assert "reservedConcurrentExecutions" not in function.inputs
    (policy,) = seen.of("iam/rolePolicy:RolePolicy")
    allowed = {action: one for one in json.loads(policy.inputs["policy"])["Statement"] for action in one["Action"]}
    assert allowed["batch:UpdateJobQueue"]["Resource"] == [make.QUEUE]
    assert allowed["dynamodb:PutItem"]["Condition"] == {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["accel-budget-stop"]}
    }
    assert [one for one, of in allowed.items() if of["Resource"] in ("*", ["*"])] == [
        "batch:DescribeComputeEnvironments",
        "batch:DescribeJobQueues",
        "batch:ListJobs",
    ]


def test_the_archive_stands_alone(tmp_path: Path) -> None:
    """With nothing but Python and what it finds in the archive; boto3 is there where it runs."""
    for path, text in archive().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    code = "import stack_budget.budget_function as one, sys; print(one.handler, 'pulumi' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "False" in done.stdout, done.stderr


TAGS: dict[str, Any] = {"tags": {stop_hooks.TAG: "us-east-1/claims"}}


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        (TAGS, TAGS, True),
        (None, TAGS, True),
        (TAGS, {}, True),  # the budget is taken away: nothing would be left that takes the stop back
        ({}, {}, False),
        ({}, {"tags": {"accel:stack": "dev"}}, False),
    ],
)
def test_a_change_that_would_undo_a_stop_is_refused(
    old: Any, new: Any, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def reason(region: str, table: str) -> str:
        asked.append((region, table))
        return "budget gpus: 1,200.00 USD"

    monkeypatch.setattr(stop_hooks, "reason", reason)
    hooks: list[pulumi.ResourceHookBinding] = []
    memory.run(lambda: hooks.append(stop_hooks.stop_hooks()))
    (before,) = hooks[0].before_update or []
    call = cast(Any, before).callback
    args = SimpleNamespace(name="gpu", new_inputs=new, old_inputs=old)
    if refused:
        with pytest.raises(stop_hooks.StoppedStackError, match=r"gpu: the stack is stopped .*`stacks budget resume`"):
            call(args)
        assert asked == [("us-east-1", "claims")]
    else:
        call(args)
        assert asked == []
