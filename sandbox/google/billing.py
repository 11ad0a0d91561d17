"""Billing account of the project, and its budgets, which publish what a test says was spent. Google publishes to a
budget's topic several times a day, whatever the thresholds are; here POST /sandbox-api/spend does, with {"budget": KEY
or display name, "actual": 950, "forecast": 1200, "since": "2026-11-01T08:00:00Z"}."""

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from . import PROJECT, PROJECT_NUMBER
from .errors import ApiError
from .pubsub import publish
from .world import Call, Collection, Json, World

ACCOUNT = "012345-567890-ABCDEF"
CURRENCY = "USD"
_BUDGETS = "billingbudgets.billingAccounts.budgets"
_MAIL_MOST = 5  # by the description of monitoringNotificationChannels


def _account(call: Call) -> None:
    """Refuse another billing account, for which the API gives no further reason. Source:
    https://github.com/terraform-google-modules/terraform-google-project-factory/issues/405"""
    if call.key.split("/")[1] != ACCOUNT:
        raise ApiError(403, "The caller does not have permission")


def _made(call: Call, key: str, item: Json) -> None:
    """Check and complete a budget, whose id is Google's. The API does not say what is wrong with one. Source of the
    wording: https://github.com/hashicorp/terraform-provider-google/issues/9375"""
    _account(call)
    wrong = ApiError(400, "Request contains an invalid argument.")
    amount = item.get("amount", {}).get("specifiedAmount")
    if amount is not None and amount.setdefault("currencyCode", CURRENCY) != CURRENCY:
        raise wrong
    rule = item.get("notificationsRule", {})
    if len(item.get("displayName", "")) > 60 or len(rule.get("monitoringNotificationChannels", [])) > _MAIL_MOST:
        raise wrong
    if any(each.get("thresholdPercent", 0) < 0 for each in item.get("thresholdRules", [])):
        raise wrong
    topic = rule.get("pubsubTopic")
    if topic and (rule.get("schemaVersion") != "1.0" or f"pubsub/{topic}" not in call.world.items):
        raise wrong
    for channel in rule.get("monitoringNotificationChannels", []):
        if f"monitoring/{channel}" not in call.world.items:
            raise wrong
    kept = item.setdefault("budgetFilter", {})
    # Google answers with the project's number.
    if "projects" in kept:
        kept["projects"] = [
            each.replace(f"projects/{PROJECT}", f"projects/{PROJECT_NUMBER}") for each in kept["projects"]
        ]
    kept.setdefault("creditTypesTreatment", "INCLUDE_ALL_CREDITS")
    if "customPeriod" not in kept:
        kept.setdefault("calendarPeriod", "MONTH")
    key = f"{call.key}/{uuid.uuid4()}"
    item |= {"__key": key, "name": key, "etag": call.world.number().to_bytes(8, "big").hex()}


def _changed(call: Call, item: Json, news: Json) -> None:
    _made(call, call.key, {**news})
    news["etag"] = call.world.number().to_bytes(8, "big").hex()


def _accounts(call: Call) -> list[Json]:
    return [{"name": f"billingAccounts/{ACCOUNT}", "open": True, "displayName": "Sandbox", "currencyCode": CURRENCY}]


def _account_of_project(call: Call, collection: Collection) -> Json:
    name = f"projects/{PROJECT}/billingInfo"
    return {
        "name": name,
        "projectId": PROJECT,
        "billingAccountName": f"billingAccounts/{ACCOUNT}",
        "billingEnabled": True,
    }


def _read_account(call: Call, collection: Collection) -> Json:
    _account(call)
    return _accounts(call)[0]


def spend(world: World, told: Json) -> Json:
    """Publish what was spent, and return the message that the budget's topic got, which /sandbox-api/spend answers.
    Form of the message:
    https://docs.cloud.google.com/billing/docs/how-to/budgets-programmatic-notifications#notification-format"""
    budgets = world.below("billingbudgets", "billingAccounts/-/budgets")
    found = next((each for each in budgets if told["budget"] in (each["name"], each.get("displayName"))), None)
    if found is None:
        raise ApiError(404, f"sandbox: there is no budget {told['budget']}")
    amount = found["amount"]["specifiedAmount"]
    whole = int(amount.get("units", 0)) + amount.get("nanos", 0) / 1e9
    month = datetime.now(UTC).strftime("%Y-%m-01T08:00:00Z")
    data: Json = {
        "budgetDisplayName": found.get("displayName", ""),
        "costAmount": float(told["actual"]),
        "costIntervalStart": told.get("since", month),
        "budgetAmount": whole,
        "budgetAmountType": "SPECIFIED_AMOUNT",
        "currencyCode": amount["currencyCode"],
    }
    for basis, field, spent in (
        ("CURRENT_SPEND", "alertThresholdExceeded", told["actual"]),
        ("FORECASTED_SPEND", "forecastThresholdExceeded", told.get("forecast", 0)),
    ):
        rules = [each for each in found.get("thresholdRules", []) if each.get("spendBasis", "CURRENT_SPEND") == basis]
        passed = [each["thresholdPercent"] for each in rules if float(spent) >= each["thresholdPercent"] * whole]
        data |= {field: max(passed)} if passed else {}
    _, account, _, budget = found["name"].split("/")
    about = {"billingAccountId": account, "budgetId": budget, "schemaVersion": "1.0"}
    topic = found.get("notificationsRule", {}).get("pubsubTopic", "")
    return {"messageId": publish(world, topic, json.dumps(data), about) if topic else "", "data": data}


COLLECTIONS = (
    Collection(
        id=_BUDGETS, schema="GoogleCloudBillingBudgetsV1Budget", name="displayName", made=_made, changed=_changed,
        missing="Requested entity was not found.",
    ),
    Collection(id="cloudbilling.billingAccounts", schema="BillingAccount", listed=_accounts),
    Collection(id="cloudbilling.projects", schema="ProjectBillingInfo"),
    Collection(
        id="monitoring.projects.notificationChannels", schema="NotificationChannel", name="type",
        made=lambda call, key, item: _channel_made(call, item),
        missing="Failed to find channel for name {key}.",
    ),
)  # fmt: skip


def _channel_made(call: Call, item: Json) -> None:
    if item["type"] == "email" and "@" not in item.get("labels", {}).get("email_address", ""):
        raise ApiError(400, "Field labels[email_address] has an invalid value: it is no email address")  # from memory
    key = f"{call.key}/{call.world.number()}"
    item |= {"__key": key, "name": key, "enabled": item.get("enabled", True)}


OWN: dict[str, Callable[[Call, Collection], Any]] = {
    "cloudbilling.billingAccounts.get": _read_account,
    "cloudbilling.projects.getBillingInfo": _account_of_project,
}
