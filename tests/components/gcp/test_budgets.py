"""Budgets of Google Cloud: who is told, at what, and what the function that stops a stack may do."""

import ast
from typing import Any

import pulumi
import pytest

from accel.diagnostics.faults import find
from components.gcp.budget import GcpBudgetSpec
from components.gcp.budget_stop import PACKAGE, archive
from components.gcp.stop_hooks import wait_for_agent
from tests.support import gcp

from .budget_makers import GIVEN, budget, plan, stop

TOPIC = f"projects/{gcp.PROJECT}/topics/stop"
BUDGET = "billing/budget:Budget"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"thresholds": {"actual": [0.5, 90]}},
            "thresholds.actual[1]: is 90, which is 9,000 % of the amount; write 0.9",
        ),
        ({"stop": {"at": 100}}, "stop.at: is 100, which is 10,000 % of the amount; write 1 for 100 %"),
        (
            {"recipients": {}},
            "recipients: is empty, so nobody is told; give one of emails, billing_admins, pubsub_topic",
        ),
        ({"currency": "euro"}, 'currency: is "euro"; write its code, such as USD or EUR'),
        ({"billing_account": "my-account"}, 'billing_account: is "my-account"; `gcloud billing accounts list`'),
        ({"recipients": {"pubsub_topic": TOPIC}}, "recipients: has nobody who gets mail, and there are thresholds"),
    ],
)
def test_what_is_wrong_is_one_line(wrong: dict[str, Any], said: str) -> None:
    (fault,) = find(GcpBudgetSpec, {**GIVEN, **wrong})
    assert str(fault).startswith(said)


def test_a_topic_alone_is_enough_without_thresholds() -> None:
    nobody = {**GIVEN, "recipients": {"pubsub_topic": TOPIC}, "thresholds": {"actual": [], "forecast": []}}
    assert find(GcpBudgetSpec, nobody) == []
    # A stop by the forecast needs a threshold, which needs somebody who gets mail.
    forecast = {**nobody, "recipients": {"chat_secret": "chat"}, "stop": {"basis": "forecast"}}
    (fault,) = find(GcpBudgetSpec, forecast)
    assert "has nobody who gets mail" in str(fault)
    assert find(GcpBudgetSpec, {**forecast, "stop": {}}) == []


def test_the_address_of_a_chat_is_not_shown() -> None:
    address = "https://chat.googleapis.com/v1/spaces/A/messages?key=PLANTED-SECRET"
    (fault,) = find(GcpBudgetSpec, {**GIVEN, "recipients": {"emails": ["a@company.com"], "chat_secret": address}})
    assert "PLANTED-SECRET" not in str(fault) and "is no id of a secret" in str(fault)


def test_a_budget_says_what_was_asked_for() -> None:
    kept = {"projects": [], "labels": {"team": "ml"}, "services": ["services/6F81-5844-456A"]}
    seen = gcp.run(lambda: budget("ml", TOPIC, stop={"at": 1.2, "basis": "forecast"}, filters=kept, credits=False))
    made = seen.one(BUDGET).inputs
    assert made["amount"]["specifiedAmount"] == {"currencyCode": "USD", "units": "1000", "nanos": 500_000_000}
    assert made["budgetFilter"] == {
        "calendarPeriod": "MONTH",
        "labels": {"team": "ml"},
        "services": kept["services"],
        "creditTypesTreatment": "EXCLUDE_ALL_CREDITS",
    }
    rules = [(rule["spendBasis"], rule["thresholdPercent"]) for rule in made["thresholdRules"]]
    actual = [("CURRENT_SPEND", share) for share in (0.5, 0.9, 1.0)]
    assert rules == [*actual, ("FORECASTED_SPEND", 1.0), ("FORECASTED_SPEND", 1.2)]
    told = made["allUpdatesRule"]
    assert (told["pubsubTopic"], told["disableDefaultIamRecipients"], told["schemaVersion"]) == (TOPIC, True, "1.0")
    assert len(told["monitoringNotificationChannels"]) == 1
    services = {one.inputs["service"].partition(".")[0] for one in seen.of("projects/service:Service")}
    assert services == {"billingbudgets", "monitoring"}


def test_the_function_may_stop_and_not_start() -> None:
    seen = gcp.run(lambda: stop("stop"))
    permissions = seen.one("projects/iAMCustomRole:IAMCustomRole").inputs["permissions"]
    assert "tpu.nodes.delete" in permissions and not [each for each in permissions if each.endswith("create")]
    roles = {one.inputs["role"] for one in seen.of("storage/bucketIAMMember:BucketIAMMember")}
    assert roles == {"roles/storage.objectUser", "roles/storage.objectViewer"}
    function = seen.one("cloudfunctionsv2/function:Function").inputs
    assert function["eventTrigger"]["retryPolicy"] == "RETRY_POLICY_RETRY"
    assert (function["serviceConfig"]["maxInstanceCount"], function["serviceConfig"]["ingressSettings"]) == (
        1,
        "ALLOW_INTERNAL_ONLY",
    )
    granted = gcp.run(lambda: plan("plan")).one("storage/bucketIAMMember:BucketIAMMember").inputs
    assert (granted["bucket"], granted["role"]) == ("jobs", "roles/storage.objectUser")


def test_the_function_may_make_every_call_of_its_levers() -> None:
    """Which permissions a method needs: https://github.com/iann0036/iam-dataset (gcp/map.json at 2073fa5)."""
    seen = gcp.run(lambda: stop("stop"))
    permissions = set(seen.one("projects/iAMCustomRole:IAMCustomRole").inputs["permissions"])
    group = "compute.instanceGroupManagers.delete", "compute.instanceGroups.delete", "compute.instances.delete"
    assert permissions >= {*group, "container.clusters.update", "tpu.nodes.delete", "aiplatform.customJobs.cancel"}
    # Google names a role for who cancels jobs of Batch, and no permission.
    assert "roles/batch.jobsEditor" in {one.inputs["role"] for one in seen.of("projects/iAMMember:IAMMember")}


def test_the_function_is_tried_again_while_google_sets_up_eventarc(monkeypatch: pytest.MonkeyPatch) -> None:
    """For eleven minutes, and for this failure alone."""
    slept: list[float] = []
    monkeypatch.setattr("components.gcp.stop_hooks.time.sleep", slept.append)
    monkeypatch.setattr("pulumi.log.info", lambda text: None)
    said = "Error 400: Permission denied while using the Eventarc Service Agent. If you recently"

    def failed(*errors: str) -> bool:
        return wait_for_agent(pulumi.ErrorHookArgs("urn", "", "stop", "type", errors=list(errors)))

    tries = 1
    while failed(*[said] * tries):
        tries += 1
    assert (tries, slept[:3], 600 < sum(slept) < 720) == (26, [1, 2, 4], True)
    assert not failed("Error 400: runtime: is not supported", said)


def test_the_archive_needs_nothing_but_the_standard_library() -> None:
    files = archive()
    own = {"accel.budget", PACKAGE, "functions_framework"}
    for path, text in files.items():
        if not path.endswith(".py"):
            continue
        nodes = list(ast.walk(ast.parse(text, path)))
        absolute = {
            node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level
        }
        absolute |= {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
        foreign = {name for name in absolute if name.split(".")[0] in ("accel", "components", "pulumi", "pydantic")}
        assert all(name.startswith("accel.budget") for name in foreign), (path, foreign)
    assert f"{PACKAGE}/handler.py" in files and own
