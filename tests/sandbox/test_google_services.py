"""The APIs of the sandbox's Google project: all are off but Service Usage until somebody enables them."""

from collections.abc import Iterator

import pytest

from tests.support.google_fake import COMPUTE, CONTAINER, Fake, P, serving

USAGE = f"serviceusage.googleapis.com/v1/{P}/services"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fake]:
    """A project as it is made."""
    with serving(tmp_path_factory.mktemp("google")) as made:
        yield made


@pytest.mark.parametrize(
    ("path", "service", "title"),
    [
        (f"{COMPUTE}/global/networks", "compute", "Compute Engine API"),
        (f"{CONTAINER}/us-central1/clusters", "container", "Kubernetes Engine API"),
        (f"cloudresourcemanager.googleapis.com/v1/{P}", "cloudresourcemanager", "Cloud Resource Manager API"),
        ("storage.googleapis.com/storage/v1/b?project=accel-sandbox", "storage", "Cloud Storage JSON API"),
        (f"cloudquotas.googleapis.com/v1/{P}/locations/global/services/compute.googleapis.com/quotaInfos",
         "cloudquotas", "Cloud Quotas API"),
    ],
)  # fmt: skip
def test_a_call_to_an_api_that_is_off_is_refused(fresh: Fake, path: str, service: str, title: str) -> None:
    answer = fresh.ask("GET", path)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (403, "PERMISSION_DENIED")
    assert error["message"].startswith(f"{title} has not been used in project 210020003000 before or it is disabled.")
    assert error["errors"][0]["reason"] == "accessNotConfigured"
    (detail,) = error["details"]
    assert (detail["reason"], detail["metadata"]["service"]) == ("SERVICE_DISABLED", f"{service}.googleapis.com")


def test_an_api_that_was_enabled_is_served(fresh: Fake) -> None:
    operation = fresh.call("POST", f"{USAGE}/pubsub.googleapis.com:enable", {})
    while not operation.get("done"):
        operation = fresh.call("GET", f"serviceusage.googleapis.com/v1/{operation['name']}")
    assert fresh.call("GET", f"{USAGE}/pubsub.googleapis.com")["state"] == "ENABLED"
    assert fresh.ask("GET", f"pubsub.googleapis.com/v1/{P}/topics").ok


def test_the_project_has_no_other_apis(fresh: Fake) -> None:
    assert fresh.call("GET", f"{USAGE}/serviceusage.googleapis.com")["state"] == "ENABLED"
    assert fresh.call("GET", f"{USAGE}/iam.googleapis.com")["state"] == "DISABLED"
