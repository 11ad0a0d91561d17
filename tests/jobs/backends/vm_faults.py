"""Submits to the sandbox's Google through a proxy that breaks calls, and what they leave there."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from accel.clouds.timeouts import Timing
from accel.diagnostics.errors import CloudSilent, JobsError
from jobs import agent
from jobs.backends.base import JobRef, Request
from jobs.backends.vm.backend import VmBackend
from jobs.backends.vm.gpu import GceBackend
from jobs.backends.vm.tpu import TpuVmBackend
from tests.jobs.backends import gce_target, tpu_target
from tests.jobs.backends.gce_cloud import network
from tests.support.google_fake import COMPUTE, Fake, P
from tests.support.proxy import GoogleProxy
from tests.support.soak import SOAK
from tests.support.waiting import PATIENCE_S, until

GROUND: dict[str, Any] = {"service_account": "runner@elsewhere.iam.gserviceaccount.com", "zones": ["us-central1-a"]}
GROUNDS: dict[str, dict[str, Any]] = {
    "queue": {**GROUND, "network": "default", "subnetworks": {"us-central1": "default"}},
    "instance": {
        **GROUND,
        "network": "global/networks/default",
        "subnetworks": {"us-central1": "regions/us-central1/subnetworks/default"},
    },
}
GROUNDS["group"] = GROUNDS["instance"]
FIELDS: dict[str, dict[str, Any]] = {
    "queue": {"accelerator": {"type": "v5litepod-8"}},
    "instance": {"accelerator": {"type": "l4"}},
    "group": {"accelerator": {"type": "l4"}, "nodes": 2},
}
"""Jobs, by what they are made as."""
ZONE = f"{COMPUTE}/zones/us-central1-a"
QUEUE = f"tpu.googleapis.com/v2/{P}/locations/us-central1-a/queuedResources"
LISTS = {
    QUEUE: "queuedResources",
    f"{ZONE}/instanceGroupManagers": "items",
    f"{ZONE}/instances": "items",
    f"{COMPUTE}/global/instanceTemplates": "items",
}
MADE = {
    "queue": ["queuedResources {}"],
    "instance": ["instances {}"],
    "group": ["instanceGroupManagers {}", "instances {}-0", "instances {}-1", "instanceTemplates {}"],
}
"""What there is of a job, in the order of LISTS."""


def point(patch: pytest.MonkeyPatch, url: str) -> None:
    """Leads the client's calls there."""
    for api, path in (("tpu", ""), ("compute", "compute/v1/"), ("storage", "storage/v1/")):
        patch.setenv(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api.upper()}", f"{url}/{api}.googleapis.com/{path}")


@dataclass
class Cloud:
    """The sandbox's Google behind its proxy."""

    fake: Fake
    proxy: GoogleProxy
    point: Callable[[str], None]
    timing: Timing

    def backend(self, kind: str) -> VmBackend:
        if kind == "queue":
            return TpuVmBackend("tpus", tpu_target.make_target(**GROUNDS[kind]), timing=self.timing)
        return GceBackend("gpus", gce_target.make_target(**GROUNDS[kind]), timing=self.timing)

    def request(self, kind: str, text: str) -> Request:
        """For a job under the key of a text."""
        target: Any = tpu_target if kind == "queue" else gce_target
        return target.make_request(target.make_target(**GROUNDS[kind]), f"{kind} {text}", **FIELDS[kind])

    def submit(self, kind: str, request: Request) -> JobRef | JobsError:
        try:
            return self.backend(kind).submit(request)
        except JobsError as error:
            return error

    @property
    def patient(self) -> "Cloud":
        """With a user's patience."""
        return replace(self, timing=replace(self.timing, read_s=20))

    def settled(self, kind: str, request: Request) -> JobRef | JobsError:
        """As a user does it who is told to run the same command again."""
        answers = (self.patient.submit(kind, request) for _ in range(5))
        return next((each for each in answers if not isinstance(each, CloudSilent)), CloudSilent("five times"))

    def left(self, name: str) -> list[str]:
        """What there is of a job."""
        return [
            f"{path.rpartition('/')[2]} {own}"
            for path, member in LISTS.items()
            for item in self.fake.call("GET", path).get(member, [])
            if name in (own := item["name"].rpartition("/")[2])
        ]

    def becomes(self, name: str, wanted: list[str], title: str = "") -> None:
        """Waits for what there is of a job: what was asked for takes its time to come and to go."""
        give_up = time.monotonic() + PATIENCE_S
        while (found := self.left(name)) != wanted:
            assert time.monotonic() < give_up, (title, found)
            time.sleep(0.02)

    def clear(self) -> None:
        """Deletes all that jobs made."""
        for path, member in LISTS.items():
            more = {"force": "true"} if path == QUEUE else {}
            for item in self.fake.call("GET", path).get(member, []):
                self.fake.ask("DELETE", f"{path}/{item['name'].rpartition('/')[2]}", **more)
            until(lambda path=path, member=member: not self.fake.call("GET", path).get(member))


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines have no startup script: they are there, and nothing runs on them."""
    monkeypatch.setattr(agent, "metadata", dict[str, str])


@pytest.fixture(name="faulty_cloud")
def cloud(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """With a network and a bucket. Nothing is left."""
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", fake.token)
    made = fake.ask(
        "POST", "storage.googleapis.com/storage/v1/b", {"name": "acme-jobs"}, project=P.removeprefix("projects/")
    )
    assert made.status_code in (200, 409)
    network(fake)
    # An hour of faults meets a second in which the machine does something else.
    read_s = 3 if SOAK else 1
    timing = Timing(connect_s=2, read_s=read_s, attempts=4, backoff_s=0.01, longest_wait_s=0.05, poll_s=0.02)
    found = Cloud(fake, GoogleProxy(fake.url), lambda url: point(monkeypatch, url), timing)
    found.point(found.proxy.endpoint)
    yield found
    found.proxy.stop()
    fake.well()
    found.clear()
