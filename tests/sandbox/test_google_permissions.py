"""The permissions of the sandbox's Google: what is recorded, and what whoever lacks one reads."""

from collections.abc import Iterator
from typing import Any

import pytest

from accel.catalog.gcp_permissions import gcp_permissions
from sandbox.google import api
from sandbox.google.discovery import document
from sandbox.google.permissions import of_method
from tests.support.google_fake import COMPUTE, CONTAINER, Fake, P, fake

__all__ = ["fake"]


def control(fake: Fake, verb: str, **body: Any) -> Any:
    return fake.call(verb, "sandbox-api/permissions", body)


@pytest.fixture(autouse=True)
def everything(fake: Fake) -> Iterator[None]:
    yield
    control(fake, "DELETE")


def served() -> list[str]:
    verbs = {*api._VERBS}  # pyright: ignore[reportPrivateUsage]
    methods = [method for name in api.DOCUMENTS for method in document(name).methods]
    return [each.id for each in methods if each.collection in api.COLLECTIONS and each.verb in verbs]


def test_every_permission_that_a_method_needs_exists() -> None:
    ids = served()
    assert len(ids) > 250
    assert {permission for each in ids for permission in of_method(each)} <= gcp_permissions()


def test_calls_are_recorded_with_what_their_bodies_need(fake: Fake) -> None:
    control(fake, "DELETE")
    fake.done("POST", f"{COMPUTE}/global/networks", {"name": "seen", "autoCreateSubnetworks": False})
    network = f"https://www.googleapis.com/compute/v1/{P}/global/networks/seen"
    fake.call("POST", f"{COMPUTE}/global/firewalls", {"name": "seen", "network": network})
    assert control(fake, "GET") == {
        "permissions": None,
        "recorded": [
            "compute.firewalls.create",
            "compute.globalOperations.get",
            "compute.networks.create",
            "compute.networks.updatePolicy",
        ],
    }


REFUSED = [
    ("POST", f"{COMPUTE}/global/networks", {"name": "n"}, "compute.networks.create",
     f"Required 'compute.networks.create' permission for '{P}/global/networks/n'"),
    ("POST", f"{CONTAINER}/us-central1/clusters", {"cluster": {"name": "c"}}, "container.clusters.create",
     f'Required "container.clusters.create" permission(s) for "{P}/locations/us-central1/clusters".'),
    ("GET", f"artifactregistry.googleapis.com/v1/{P}/locations/us/repositories/r", None,
     "artifactregistry.repositories.get", "Permission 'artifactregistry.repositories.get' denied on resource "
     f"'//artifactregistry.googleapis.com/{P}/locations/us/repositories/r' (or it may not exist)."),
]  # fmt: skip


@pytest.mark.parametrize("http, path, body, permission, words", REFUSED, ids=[row[3] for row in REFUSED])
def test_what_the_user_may_not_do_is_refused_by_name(
    fake: Fake, http: str, path: str, body: Any, permission: str, words: str
) -> None:
    control(fake, "POST", permissions=["compute.networks.get"])
    answer = fake.ask(http, path, body)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"], error["message"]) == (403, "PERMISSION_DENIED", words)
    for detail in error.get("details", []):
        assert (detail["reason"], detail["metadata"]["permission"]) == ("IAM_PERMISSION_DENIED", permission)
    assert permission in control(fake, "GET")["recorded"]


def test_machines_have_tokens_of_their_own(fake: Fake) -> None:
    control(fake, "POST", permissions=[])
    fake.ask("GET", f"{COMPUTE}/global/networks", token=f"{fake.token}-nameless").raise_for_status()
    assert fake.ask("GET", f"{COMPUTE}/global/networks").status_code == 403
