"""Declared TPUs, and the scheduled function, as they are sent to the engine."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from components.gcp.reconcile_function import TIMEOUT_S, VCPU, VCPU_S_FREE
from tests.support import gcp

from . import vm_makers as makers

OBJECT = "storage/bucketObject:BucketObject"


def declared(**values: object) -> dict[str, Any]:
    sent = gcp.run(lambda: makers.queued_tpu("trainer", **values)).one(OBJECT).inputs
    assert sent["name"] == "accel-queues/trainer.json"
    return json.loads(memory_text(sent["content"]))


def memory_text(value: Any) -> str:
    return value["value"] if isinstance(value, dict) else value


def faults(**values: object) -> str:
    with pytest.raises(ValidationError) as refused:
        makers.queued_spec(**values)
    return str(refused.value)


def test_a_declaration_is_the_body_of_a_record() -> None:
    body = declared(capacity="spot", slices=2, valid_for_s=7200, labels={"team": "ml"}, tags=["tpu"])
    machine, node = body["machine"], body["machine"]["node"]
    assert (body["zones"], body["spot"], body["hosts"], body["standing"]) == (
        ["us-central1-a"],
        True,
        8,
        {"until": None},
    )
    assert (machine["slices"], machine["valid_s"], machine["reservation"], machine["guaranteed"]) == (
        2,
        7200,
        None,
        False,
    )
    assert machine["subnetworks"]["us-central1"].endswith("/subnetworks/s")
    assert (node["acceleratorType"], node["runtimeVersion"]) == ("v5litepod-16", "v2-alpha-tpuv5-lite")
    assert node["labels"] == {"accel-stack": "prod", "team": "ml"} and node["tags"] == ["tpu"]
    assert node["serviceAccount"]["email"] == makers.ACCOUNT
    assert node["metadata"] == {"enable-oslogin": "TRUE", "block-project-ssh-keys": "TRUE"}


def test_tiers_and_times() -> None:
    assert declared(capacity="guaranteed")["machine"]["guaranteed"] is True
    assert declared(capacity="reserved")["machine"]["reservation"] == "-"
    assert declared(capacity="reserved", reservation="mine")["machine"]["reservation"] == "mine"
    until = "2027-01-31T08:00:00Z"
    assert declared(valid_until=until)["standing"] == {"until": until}
    assert declared(accelerator_type="v5p", topology="2x2x2", zone="us-east5-a")["machine"]["node"]["acceleratorConfig"]


@pytest.mark.parametrize(
    "wrong, rule",
    [
        ({"valid_for_s": 7200, "valid_until": "2027-01-31T08:00:00Z"}, "valid_for_s"),
        ({"valid_until": "tomorrow"}, "valid_until"),
        ({"valid_until": "2027-01-31T08:00:00"}, "without a zone"),
        ({"capacity": "spot", "reservation": "mine"}, "reservation"),
        ({"slices": 0}, "slices"),
        ({"labels": {"accel-maker": "me"}}, "accel-maker"),
    ],
)
def test_what_is_refused(wrong: dict[str, Any], rule: str) -> None:
    assert rule in faults(**wrong)


def test_a_zone_that_no_list_has_is_a_warning() -> None:
    (found,) = makers.queued_spec(zone="us-central1-z").findings
    assert (found.rule, found.severity, found.field) == ("gcp.tpu.zone", "warn", "zone")


def test_what_the_providers_queue_lacks_is_pointed_to_the_declared_one() -> None:
    with pytest.raises(ValidationError, match="queued_tpus"):
        makers.queue_spec(spot=True)


def test_the_function_is_called_by_the_scheduler_as_its_account() -> None:
    seen = gcp.run(lambda: makers.reconcile_function("reconcile", every_min=10))
    job = seen.one("cloudscheduler/job:Job").inputs
    assert (job["schedule"], job["attemptDeadline"]) == ("*/10 * * * *", f"{TIMEOUT_S}s")
    assert job["retryConfig"]["retryCount"] == 1, "the provider would take the API's own for a change"
    function = seen.one("cloudfunctionsv2/function:Function").inputs
    assert "eventTrigger" not in function and function["serviceConfig"]["ingressSettings"] == "ALLOW_INTERNAL_ONLY"
    assert function["serviceConfig"]["environmentVariables"] == {"BUCKET": "records"}
    roles = {each.inputs["role"] for each in seen.of("cloudrunv2/serviceIamMember:ServiceIamMember")}
    assert roles == {"roles/run.invoker"}
    acts = seen.one("serviceaccount/iAMMember:IAMMember").inputs
    assert acts["role"] == "roles/iam.serviceAccountUser" and acts["serviceAccountId"].endswith(makers.ACCOUNT)


def test_every_minute_has_a_schedule_of_its_own() -> None:
    seen = gcp.run(lambda: makers.reconcile_function("reconcile", every_min=1))
    assert seen.one("cloudscheduler/job:Job").inputs["schedule"] == "* * * * *"


def test_looks_of_ten_seconds_are_free() -> None:
    """What the key's description says."""
    for every in (1, 5):
        looks = makers.ReconcileSpec.model_validate({"every_min": every}).looks
        assert looks * 10 * VCPU < VCPU_S_FREE
