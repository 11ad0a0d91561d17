"""AWS Budgets beyond moto: UpdateBudget, subscribers of notifications, and money that is spent.

Control: POST /sandbox-api/spend {"budget": NAME, "actual": 1200, "forecast": 2000} sets what the budget shows from then
on. A notification whose threshold is passed by that is published to its topics; nobody gets mail. With "again": true,
notifications that were passed before are published too, since SNS may deliver a message twice.
"""

import json
from typing import Any

Document = dict[str, Any]
Answer = tuple[int, list[tuple[str, str]], bytes]

_tags: dict[str, dict[str, str]] = {}
_TYPES = {"ACTUAL": "ActualSpend", "FORECASTED": "ForecastedSpend"}


def answer(operation: str, account: str, body: bytes) -> Answer | None:
    """Return None for operations that moto answers."""
    request: Document = json.loads(body or b"{}")
    if operation == "CreateBudget":
        _tags[request["Budget"]["BudgetName"]] = {
            each["Key"]: each["Value"] for each in request.get("ResourceTags", [])
        }
    if (made := _OPERATIONS.get(operation)) is None:
        return None
    headers = [("Content-Type", "application/x-amz-json-1.1")]
    return 200, headers, json.dumps(made(_budgets(account), request)).encode()


def spend(account: str, request: Document) -> Document:
    """Set what a budget shows, as the module says; return the names of published notifications. Raise ValueError."""
    from moto.sns.models import sns_backends

    name = request["budget"]
    if name not in (budgets := _budgets(account)):
        raise ValueError(f"there is no budget {name!r}: {', '.join(sorted(budgets)) or 'there are none'}")
    budget = budgets[name]
    before = budget.to_dict()["CalculatedSpend"]
    unit = budget.budget["BudgetLimit"]["Unit"]
    amounts = {"ActualSpend": request["actual"], "ForecastedSpend": request.get("forecast", request["actual"])}
    now = {key: {"Amount": str(value), "Unit": unit} for key, value in amounts.items()}
    budget.budget["CalculatedSpend"] = now
    told: list[str] = []
    for each in budget.notifications:
        line = _line(budget, each.details)
        kind = _TYPES[each.details["NotificationType"]]
        was, is_now = float(before[kind]["Amount"]), float(now[kind]["Amount"])
        if is_now <= line or (was > line and not request.get("again")):
            continue
        words = f"{each.details['NotificationType']} amount {is_now:.2f} {unit} is greater than {line:.2f} {unit}"
        told.append(words)
        for topic in (one["Address"] for one in each.subscribers if one["SubscriptionType"] == "SNS"):
            message = f"AWS Budget Notification\nBudget Name: {name}\n{words}"
            sns_backends[account][topic.split(":")[3]].publish(message, arn=topic)
    return {"published": told}


def _budgets(account: str) -> dict[str, Any]:
    from moto.budgets.models import budgets_backends

    return budgets_backends[account]["aws"].budgets[account]


def _line(budget: Any, details: Document) -> float:
    """Return the amount above which a notification is sent."""
    threshold = float(details["Threshold"])
    if details.get("ThresholdType", "PERCENTAGE") == "ABSOLUTE_VALUE":
        return threshold
    return threshold / 100 * float(budget.budget["BudgetLimit"]["Amount"])


def _update(budgets: dict[str, Any], request: Document) -> Document:
    news: Document = request["NewBudget"]
    budget = budgets[news["BudgetName"]]
    kept = {key: budget.budget[key] for key in ("CalculatedSpend", "TimePeriod") if key in budget.budget}
    budget.budget = {**kept, **news}
    return {}


def _subscribers(budgets: dict[str, Any], request: Document) -> Document:
    wanted: Document = request["Notification"]
    keys = ("NotificationType", "ComparisonOperator", "Threshold", "ThresholdType")
    for each in budgets[request["BudgetName"]].notifications:
        if all(each.details.get(key) == wanted.get(key) for key in keys):
            return {"Subscribers": each.subscribers}
    return {"Subscribers": []}


def _tagged(budgets: dict[str, Any], request: Document) -> Document:
    of = _tags[request["ResourceARN"].rpartition("/")[2]]
    of.update({each["Key"]: each["Value"] for each in request.get("ResourceTags", [])})
    for key in request.get("ResourceTagKeys", []):
        of.pop(key, None)
    return {"ResourceTags": [{"Key": key, "Value": value} for key, value in of.items()]}


_OPERATIONS = {
    "UpdateBudget": _update,
    "DescribeSubscribersForNotification": _subscribers,
    "TagResource": _tagged,
    "UntagResource": _tagged,
    "ListTagsForResource": _tagged,
}
