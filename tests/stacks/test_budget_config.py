"""What a person can get wrong in `aws.budgets`, and the line that says so."""

from typing import Any

import pytest

from stacks.environment.config import ConfigFaults, load_environment
from tests.support.project import environment, put

RIGHT: dict[str, Any] = {"amount": 1000, "recipients": {"emails": ["ml@company.com"]}, "stop": {}}
AT = "aws.budgets.gpus"
CLAIMS = "needs the claim table, where clients see that the stack is stopped; leave claims as it is"


def faults(changed: dict[str, Any], **elsewhere: Any) -> list[str]:
    values = put(AT, {**RIGHT, **changed}, environment("dev"))
    for path, value in elsewhere.items():
        values = put(f"aws.{path}", value, values)
    try:
        load_environment(values)
    except ConfigFaults as refused:
        return [str(fault).partition(" [")[0] for fault in refused.faults]
    return []


@pytest.mark.parametrize("changed", [{}, {"stop": None}, {"stop": {"running": {"after_min": 0}}}])
def test_right(changed: dict[str, Any]) -> None:
    assert faults(changed) == []


@pytest.mark.parametrize(
    ("changed", "elsewhere", "line"),
    [
        (
            {"thresholds": {"actual": [0.5, 90]}},
            {},
            f"{AT}.thresholds.actual[1]: is 90, which is 9,000 % of the amount; write 0.9 for 90 %",
        ),
        ({"stop": {"at": 120}}, {}, f"{AT}.stop.at: is 120, which is 12,000 % of the amount; write 1.2 for 120 %"),
        (
            {"currency": "EUR"},
            {},
            f'{AT}.currency: is "EUR", and AWS Budgets takes USD alone; write USD, and the amount',
        ),
        ({"recipients": {}}, {}, f"{AT}.recipients: is empty, so nobody is told; give one of emails, sns_topic_arn"),
        ({"recipients": {"emails": ["ml"]}}, {}, f"{AT}.recipients.emails[0]: "),
        ({"amount": 0}, {}, f"{AT}.amount: must be above 0.0, is 0"),
        ({"stop": {"running": {"after_min": -1}}}, {}, f"{AT}.stop.running.after_min: must be at least 0, is -1"),
        ({}, {"claims": None}, f"{AT}.stop: {CLAIMS}"),
    ],
)
def test_one_line_says_what_is_wrong(changed: dict[str, Any], elsewhere: dict[str, Any], line: str) -> None:
    (found,) = faults(changed, **elsewhere)
    assert found.removeprefix("environment.").startswith(line), found
