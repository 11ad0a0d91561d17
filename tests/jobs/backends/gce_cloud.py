"""The sandbox's Google as jobs on VMs see it, and jobs for it."""

from collections.abc import Iterator
from typing import Any

import pytest

from accel.clouds.google.api import Google, object_path
from accel.clouds.timeouts import Timing
from jobs.backends.vm.gpu.instances import Instances
from jobs.backends.vm.record import Record
from jobs.backends.vm.records import folder
from tests.jobs.backends.gce_target import make_request, make_target
from tests.jobs.backends.vm_records import make_record
from tests.jobs.backends.vm_target import PROJECT
from tests.support.google_fake import COMPUTE, Fake
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake"]

QUICK = Timing(connect_s=5, read_s=20, attempts=4, backoff_s=0.02, longest_wait_s=0.1, poll_s=0.02)
GROUND = {
    "network": "global/networks/default",
    "subnetworks": {"us-central1": "regions/us-central1/subnetworks/default"},
    "service_account": "runner@elsewhere.iam.gserviceaccount.com",
    "zones": ["us-central1-a", "us-central1-b"],
}
ZONE = f"{COMPUTE}/zones/us-central1-a"
INSERT = "compute.instances.insert"


@pytest.fixture(name="gce_cloud")
def cloud(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """The sandbox's Google, with a network and a bucket; the client's variables lead there. Nothing is left."""
    lead_to(fake, monkeypatch, compute="compute/v1/")
    network(fake)
    yield fake
    fake.well()
    clear(fake)


def lead_to(fake: Fake, monkeypatch: pytest.MonkeyPatch, **apis: str) -> None:
    """The client's variables lead to it, which has the bucket of jobs. `apis`: paths of further ones."""
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", fake.token)
    for api, path in {**apis, "storage": "storage/v1/"}.items():
        root = f"{fake.url}/{api}.googleapis.com/{path}"
        monkeypatch.setenv(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api.upper()}", root)
    made = fake.ask("POST", "storage.googleapis.com/storage/v1/b", {"name": "acme-jobs"}, project=PROJECT)
    assert made.status_code in (200, 409)


def clear(fake: Fake) -> None:
    """Deletes all that jobs made."""
    for kind in ("instanceGroupManagers", "instances"):
        for item in fake.call("GET", f"{ZONE}/{kind}").get("items", []):
            fake.ask("DELETE", f"{ZONE}/{kind}/{item['name']}")
        until(lambda kind=kind: not fake.call("GET", f"{ZONE}/{kind}").get("items"))
    for item in fake.call("GET", f"{COMPUTE}/global/instanceTemplates").get("items", []):
        fake.done("DELETE", f"{COMPUTE}/global/instanceTemplates/{item['name']}")


def network(fake: Fake) -> None:
    if fake.ask("GET", f"{COMPUTE}/global/networks/default").status_code == 404:
        fake.done("POST", f"{COMPUTE}/global/networks", {"name": "default", "autoCreateSubnetworks": False})
    subnetworks = f"{COMPUTE}/regions/us-central1/subnetworks"
    if fake.ask("GET", f"{subnetworks}/default").status_code == 404:
        body = {"name": "default", "network": "global/networks/default", "ipCidrRange": "10.0.0.0/20"}
        fake.done("POST", subnetworks, body)


@pytest.fixture
def machines(gce_cloud: Fake) -> Instances:
    return Instances(Google(QUICK))


def wanted(text: str, **fields: Any) -> Record:
    """A job that goes on until it is stopped."""
    values: dict[str, Any] = {"command": ["sleep", "600"], "spot": True, **fields}
    return make_record(make_request(make_target(**GROUND), text, **values))


def made(record: Record) -> Record:
    return record.with_last(state="made")


def reach(machines: Instances, record: Record, state: str) -> list[str]:
    """The states on the way to one, with the cloud's words."""
    seen: list[str] = []

    def there() -> bool:
        found = machines.look(record, record.last)
        told = f"{found.state} {found.native}".strip()
        if not seen or seen[-1] != told:
            seen.append(told)
        return found.state == state

    until(there)
    return seen


def left(cloud: Fake, record: Record, name: str) -> bool:
    """Whether a machine has left an object in its attempt's folder."""
    path = object_path("acme-jobs", f"{folder(record.name, record.last.number)}/{name}")
    return cloud.ask("GET", f"storage.googleapis.com/storage/v1/{path}").ok


def instances(cloud: Fake) -> list[dict[str, Any]]:
    return cloud.call("GET", f"{ZONE}/instances").get("items", [])
