"""Instance templates and managed instance groups in the sandbox's Google."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.google_fake import COMPUTE, Fake, P
from tests.support.google_vms import LINK, PLACE, VMS, ZONE, gpu, message, preempt, status
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_vms"]
TEMPLATES = f"{COMPUTE}/global/instanceTemplates"
GROUPS = f"{ZONE}/instanceGroupManagers"
REGIONAL = f"{COMPUTE}/regions/us-central1/instanceGroupManagers"


@pytest.fixture
def groups(compute: Fake) -> Iterator[Fake]:
    """With a template `t` of Spot machines; groups and templates are deleted."""
    compute.done("POST", TEMPLATES, template("t"))
    yield compute
    compute.well()
    for at in (f"{COMPUTE}/zones/-/instanceGroupManagers", f"{COMPUTE}/regions/-/instanceGroupManagers"):
        for group in compute.call("GET", at)["items"]:
            compute.done("DELETE", f"compute.googleapis.com/compute/v1/{group['selfLink'].partition('/v1/')[2]}")
    for each in compute.call("GET", TEMPLATES)["items"]:
        compute.done("DELETE", f"{TEMPLATES}/{each['name']}")


def template(name: str, action: str = "DELETE") -> dict[str, Any]:
    body = gpu(scheduling={"provisioningModel": "SPOT", "instanceTerminationAction": action}, labels={"l": "1"})
    del body["name"]
    return {"name": name, "properties": {**body, "machineType": "g2-standard-4"}}


def group(size: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": "g", "targetSize": size, "instanceTemplate": "global/instanceTemplates/t", **more}


def rows(fake: Fake, at: str = f"{GROUPS}/g") -> dict[str, Any]:
    found = fake.call("POST", f"{at}/listManagedInstances")["managedInstances"]
    return {row["name"]: row for row in found}


def stable(fake: Fake, count: int, at: str = f"{GROUPS}/g") -> dict[str, Any]:
    """The group's instances when there are so many, and none is on its way."""

    def check() -> dict[str, Any] | None:
        found, there = fake.call("GET", at), rows(fake, at)
        # Between the two an instance may have gone.
        whole = all(row["currentAction"] == "NONE" and "id" in row for row in there.values())
        return there if whole and found["status"]["isStable"] and found["targetSize"] == count else None

    if count == 0:
        until(lambda: check() is not None)
        return {}
    return until(check)


@pytest.mark.parametrize(
    "properties, said",
    [
        ({}, "Required field 'resource.properties.machineType' not specified"),
        ({"machineType": "zones/us-central1-a/machineTypes/e2-standard-2"},
         "Invalid value for field 'resource.properties.machineType': 'zones/us-central1-a/machineTypes/e2-standard-2'."
         " Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'"),
        ({"machineType": "g2-standard-4"}, "Instances with guest accelerators do not support live migration."),
        ({"machineType": "e2-standard-2", "networkInterfaces": [{"network": "global/networks/none"}]},
         f"The resource '{P}/global/networks/none' was not found"),
    ],
)  # fmt: skip
def test_templates_that_are_refused(compute: Fake, properties: dict[str, Any], said: str) -> None:
    assert message(compute.ask("POST", TEMPLATES, {"name": "t", "properties": properties})) == said


def test_a_template_makes_machines_and_is_kept_while_a_group_has_it(groups: Fake) -> None:
    groups.done("POST", VMS, {"name": "one"}, sourceInstanceTemplate="global/instanceTemplates/t")
    found = groups.call("GET", f"{VMS}/one")
    assert found["machineType"] == f"{LINK}/machineTypes/g2-standard-4" and found["labels"] == {"l": "1"}
    groups.done("DELETE", f"{VMS}/one")
    at = f"{COMPUTE}/regions/us-central1/instanceTemplates"
    groups.done("POST", at, template("r"))
    assert groups.call("GET", f"{at}/r")["kind"] == "compute#instanceTemplate"
    groups.done("DELETE", f"{at}/r")
    groups.done("POST", GROUPS, group())
    used = groups.ask("DELETE", f"{TEMPLATES}/t")
    assert message(used) == (
        f"The instance_template resource '{P}/global/instanceTemplates/t' is already being used by"
        f" '{PLACE}/instanceGroupManagers/g'"
    )


def test_a_group_of_named_instances(groups: Fake) -> None:
    made = groups.done("POST", GROUPS, group())
    assert made["operationType"] == "insert" and stable(groups, 0) == {}
    names = {"instances": [{"name": "job-0"}, {"name": "job-1"}]}
    groups.done("POST", f"{GROUPS}/g/createInstances", names)
    known = stable(groups, 2)
    assert sorted(known) == ["job-0", "job-1"]
    assert known["job-0"]["instance"] == f"{LINK}/instances/job-0" and known["job-0"]["instanceStatus"] == "RUNNING"
    assert known["job-0"]["version"]["instanceTemplate"].endswith("/global/instanceTemplates/t")
    found = groups.call("GET", f"{VMS}/job-1")
    metadata = {row["key"]: row["value"] for row in found["metadata"]["items"]}
    assert metadata["created-by"].endswith("/zones/us-central1-a/instanceGroupManagers/g")
    assert groups.ask("POST", f"{GROUPS}/g/createInstances", names).status_code == 400
    strange = groups.ask("POST", f"{GROUPS}/g/deleteInstances", {"instances": [f"{PLACE}/instances/other"]})
    assert "Instance is not a member of" in message(strange)
    groups.done("POST", f"{GROUPS}/g/deleteInstances", {"instances": [f"{PLACE}/instances/job-1"]})
    assert sorted(stable(groups, 1)) == ["job-0"] and status(groups, "job-1") == ""
    groups.done("POST", f"{GROUPS}/g/abandonInstances", {"instances": [f"{PLACE}/instances/job-0"]})
    assert stable(groups, 0) == {} and status(groups, "job-0") == "RUNNING"


def test_a_group_grows_and_shrinks(groups: Fake) -> None:
    patch = {"properties": {"labels": {"extra": "2"}, "metadata": {"k": "v"}}}
    groups.done("POST", GROUPS, group(1, baseInstanceName="worker", allInstancesConfig=patch))
    (name,) = stable(groups, 1)
    assert name.startswith("worker-") and len(name) == len("worker-") + 4
    found = groups.call("GET", f"{VMS}/{name}")
    assert found["labels"] == {"l": "1", "extra": "2"} and {"key": "k", "value": "v"} in found["metadata"]["items"]
    groups.done("POST", f"{GROUPS}/g/resize", size="3")
    assert len(stable(groups, 3)) == 3
    groups.done("PATCH", f"{GROUPS}/g", {"targetSize": 1})
    assert len(stable(groups, 1)) == 1
    operation = groups.done("DELETE", f"{GROUPS}/g")
    assert operation["operationType"] == "delete" and groups.call("GET", VMS)["items"] == []


@pytest.mark.parametrize("action", ["DELETE", "STOP"])
def test_what_a_group_loses_it_makes_again(groups: Fake, action: str) -> None:
    groups.done("POST", TEMPLATES, template("own", action))
    groups.done("POST", GROUPS, group(instanceTemplate="global/instanceTemplates/own"))
    groups.done("POST", f"{GROUPS}/g/createInstances", {"instances": [{"name": "job-0"}]})
    first = stable(groups, 1)["job-0"]["id"]
    assert preempt(groups, "job-0").ok
    second = until(lambda: (row := stable(groups, 1)["job-0"])["id"] != first and row["id"])
    groups.done("DELETE", f"{VMS}/job-0")
    third = until(lambda: (row := stable(groups, 1)["job-0"])["id"] != second and row["id"])
    groups.done("POST", f"{GROUPS}/g/recreateInstances", {"instances": [f"{PLACE}/instances/job-0"]})
    until(lambda: stable(groups, 1)["job-0"]["id"] != third)


def test_a_group_may_let_what_is_lost_be(groups: Fake) -> None:
    groups.done("POST", GROUPS, group(1, instanceLifecyclePolicy={"defaultActionOnFailure": "DO_NOTHING"}))
    (name,) = stable(groups, 1)
    groups.done("DELETE", f"{VMS}/{name}")
    row = rows(groups)[name]
    assert row["currentAction"] == "NONE" and "instanceStatus" not in row


def test_a_group_without_stock_says_so_and_goes_on_trying(groups: Fake) -> None:
    groups.fault(stockout=["g2-standard-4"])
    groups.done("POST", GROUPS, group())
    groups.done("POST", f"{GROUPS}/g/createInstances", {"instances": [{"name": "job-0"}]})
    row = until(lambda: (found := rows(groups)["job-0"]).get("lastAttempt") and found)
    assert row["currentAction"] == "CREATING"
    (error,) = row["lastAttempt"]["errors"]["errors"]
    assert error["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    (told,) = groups.call("GET", f"{GROUPS}/g/listErrors")["items"]
    assert told["error"] == {"code": error["code"], "message": error["message"]}
    assert not groups.call("GET", f"{GROUPS}/g")["status"]["isStable"]
    groups.well()
    assert "lastAttempt" not in stable(groups, 1)["job-0"]


def test_a_new_template_replaces_where_the_policy_is_proactive(groups: Fake) -> None:
    groups.done("POST", GROUPS, group(1))
    (name,) = before = stable(groups, 1)
    groups.done("POST", TEMPLATES, template("u"))
    new = {"instanceTemplate": "global/instanceTemplates/u"}
    groups.done("POST", f"{GROUPS}/g/setInstanceTemplate", new)
    assert rows(groups)[name]["id"] == before[name]["id"]
    assert groups.call("GET", f"{GROUPS}/g")["status"]["versionTarget"] == {"isReached": False}
    groups.done("PATCH", f"{GROUPS}/g", {"updatePolicy": {"type": "PROACTIVE"}, "versions": [new]})
    until(lambda: stable(groups, 1)[name]["id"] != before[name]["id"])
    assert groups.call("GET", f"{GROUPS}/g")["status"]["versionTarget"] == {"isReached": True}


def test_a_group_of_a_region_spreads_over_zones(groups: Fake) -> None:
    zones = {"zones": [{"zone": f"zones/us-central1-{letter}"} for letter in "ab"]}
    groups.done("POST", REGIONAL, group(4, distributionPolicy=zones))
    found = [row["instance"].split("/")[-3] for row in stable(groups, 4, f"{REGIONAL}/g").values()]
    assert sorted(found) == ["us-central1-a", "us-central1-a", "us-central1-b", "us-central1-b"]
    groups.done("POST", f"{REGIONAL}/g/resize", size="0")
    stable(groups, 0, f"{REGIONAL}/g")
