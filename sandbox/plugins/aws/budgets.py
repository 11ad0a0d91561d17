"""Steps of tables/budgets.yaml: a budget, and notifications that have calls of their own."""

from typing import Any

from ..resource import State
from .cloud import Cloud

_TYPES = {
    "includeCredit": "IncludeCredit",
    "includeRefund": "IncludeRefund",
    "includeTax": "IncludeTax",
    "includeSupport": "IncludeSupport",
}


def _budget(state: State) -> dict[str, Any]:
    made: dict[str, Any] = {
        "BudgetName": state["name"],
        "BudgetType": state["budgetType"],
        "TimeUnit": state["timeUnit"],
        "BudgetLimit": {"Amount": state["limitAmount"], "Unit": state["limitUnit"]},
    }
    if filters := state.get("costFilters"):
        made["CostFilters"] = {each["name"]: each["values"] for each in filters}
    if types := state.get("costTypes"):
        made["CostTypes"] = {_TYPES[name]: value for name, value in types.items()}
    return made


def _notifications(state: State) -> list[dict[str, Any]]:
    return [
        {
            "Notification": {
                "NotificationType": each["notificationType"],
                "ComparisonOperator": each["comparisonOperator"],
                "Threshold": float(each["threshold"]),
                "ThresholdType": each["thresholdType"],
            },
            "Subscribers": [
                *({"SubscriptionType": "EMAIL", "Address": one} for one in each.get("subscriberEmailAddresses", [])),
                *({"SubscriptionType": "SNS", "Address": one} for one in each.get("subscriberSnsTopicArns", [])),
            ],
        }
        for each in state.get("notifications", [])
    ]


def create_budget(cloud: Cloud, state: State, old: State) -> State:
    account = cloud.account.number
    told = _notifications(state)
    sent = {"Budget": _budget(state), "NotificationsWithSubscribers": told}
    cloud.call("create_budget", AccountId=account, **sent)
    return {}


def read_budget(cloud: Cloud, state: State, old: State) -> State:
    account, _, name = state["id"].partition(":")
    at = {"AccountId": account, "BudgetName": name}
    found = cloud.call("describe_budget", **at)["Budget"]
    told: list[State] = []
    for each in cloud.call("describe_notifications_for_budget", **at)["Notifications"]:
        subscribers = cloud.call("describe_subscribers_for_notification", **at, Notification=each)["Subscribers"]
        by_kind = {
            "subscriberEmailAddresses": [one["Address"] for one in subscribers if one["SubscriptionType"] == "EMAIL"],
            "subscriberSnsTopicArns": [one["Address"] for one in subscribers if one["SubscriptionType"] == "SNS"],
        }
        spelt = {key[:1].lower() + key[1:]: value for key, value in each.items()}
        threshold = each["Threshold"]
        spelt["threshold"] = int(threshold) if threshold == int(threshold) else threshold
        told.append({**spelt, **{key: value for key, value in by_kind.items() if value}})
    arn = f"arn:aws:budgets::{account}:budget/{name}"
    return {
        "Arn": arn,
        "Tags": cloud.call("list_tags_for_resource", ResourceARN=arn)["ResourceTags"],
        "AccountId": account,
        "BudgetName": name,
        "budgetType": found["BudgetType"],
        "timeUnit": found["TimeUnit"],
        "limitAmount": found["BudgetLimit"]["Amount"],
        "limitUnit": found["BudgetLimit"]["Unit"],
        "costFilters": [{"name": key, "values": values} for key, values in found.get("CostFilters", {}).items()],
        "notifications": told,
    }


def update_budget(cloud: Cloud, new: State, old: State) -> None:
    account = cloud.account.number
    cloud.call("update_budget", AccountId=account, NewBudget=_budget(new))
    at = {"AccountId": account, "BudgetName": new["name"]}
    before, after = _notifications(old), _notifications(new)
    for each in (one for one in before if one not in after):
        cloud.call("delete_notification", **at, Notification=each["Notification"])
    for each in (one for one in after if one not in before):
        cloud.call("create_notification", **at, **each)


def delete_budget(cloud: Cloud, state: State, old: State) -> None:
    cloud.call("delete_budget", AccountId=cloud.account.number, BudgetName=state["name"])
