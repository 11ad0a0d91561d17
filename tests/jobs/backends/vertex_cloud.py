"""Vertex AI of the sandbox behind a proxy that breaks calls, with a database of claims, and jobs there."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from jobs.backends.base import JobRef, Request
from jobs.backends.vertex import Timing, VertexBackend
from tests.jobs.backends import vertex_jobs
from tests.jobs.backends.google_jobs_cloud import GoogleJobsCloud
from tests.jobs.backends.vertex_jobs import REGION
from tests.support.google_fake import Fake, P
from tests.support.proxy import GoogleProxy, Headers
from tests.support.soak import SOAK
from tests.support.waiting import until

HOST = f"{REGION}-aiplatform.googleapis.com/v1/{P}/locations/{REGION}"
JOBS = f"{HOST}/customJobs"
DATABASE = f"{P}/databases/claims"
APIS = ("aiplatform", "firestore", "logging", "cloudquotas")
GROUND: dict[str, Any] = {"service_account": "runner@elsewhere.iam.gserviceaccount.com", "bucket": "acme-vertex"}
# An hour of faults meets a second in which the machine does something else.
READ_S, LEASE_S = (2, 20) if SOAK else (0.5, 5)
QUICK = Timing(
    connect_s=1, read_s=READ_S, attempts=4, backoff_s=0.01, longest_wait_s=0.05, poll_s=0.05, silence_s=5, drain_s=0.3,
    lease_s=LEASE_S, quiet_s=0.4, window_s=1,
)  # fmt: skip


class VertexProxy(GoogleProxy):
    """Its operations are `POST create`, `POST cancel`, `GET job`, `GET jobs`, of Firestore `GET`, `POST`, `PATCH` and
    `DELETE claim`, and of Cloud Logging `POST entries:list`. `statuses`: what the sandbox answered to each."""

    def __init__(self, endpoint: str) -> None:
        self.statuses: list[tuple[str, int]] = []
        super().__init__(endpoint)

    def operation(self, line: str, headers: dict[str, str]) -> str:
        method, target, _ = line.split(" ", 2)
        path = target.partition("?")[0].strip("/")
        if "/documents/" in path:
            return f"{method} claim"
        if path.endswith(":cancel"):
            return "POST cancel"
        if path.endswith("/customJobs"):
            return "POST create" if method == "POST" else "GET jobs"
        return f"{method} job" if "/customJobs/" in path else f"{method} {path.rpartition('/')[2]}"

    def _forward(self, line: str, headers: dict[str, str], body: bytes) -> tuple[int, Headers, bytes]:
        answer = super()._forward(line, headers, body)
        self.statuses.append((self.operation(line, headers), answer[0]))
        return answer


def variables(url: str) -> dict[str, str]:
    """What leads a client to this Google."""
    return {f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api.upper()}": f"{url}/{api}.googleapis.com/" for api in APIS}


def request_of(test: str, text: str, **fields: Any) -> Request:
    """For a job under a test's key of a text."""
    return vertex_jobs.make_request(vertex_jobs.make_target(**GROUND), f"{test} {text}", **fields)


@dataclass
class Cloud(GoogleJobsCloud[VertexProxy]):
    """The sandbox's Google behind its proxy."""

    fake: Fake
    proxy: VertexProxy
    point: Callable[[str], None]
    test: str
    """Its name: two tests do not use one key."""
    timing: Timing = QUICK
    claims: str | None = DATABASE

    def changed(self, **timing: Any) -> "Cloud":
        """With another timing."""
        return replace(self, timing=replace(self.timing, **timing))

    def backend(self, **changes: Any) -> VertexBackend:
        target = vertex_jobs.make_target(**GROUND, claims=self.claims, **changes)
        return VertexBackend("trainer", target, timing=self.timing)

    def request(self, text: str, **fields: Any) -> Request:
        """For a job under the key of a text, in this test."""
        return request_of(self.test, text, **fields)

    def left(self, name: str) -> list[str]:
        """The numbers of the jobs with this name that nobody has stopped, straight from the sandbox."""
        return [each["name"].rpartition("/")[2] for each in self.all() if each["displayName"] == name]

    def all(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        query: dict[str, str] = {}
        while True:
            page = self.fake.call("GET", JOBS, **query)
            found += page.get("customJobs", [])
            if "nextPageToken" not in page:
                return found
            query = {"pageToken": page["nextPageToken"]}

    def preempt(self, ref: JobRef) -> bool:
        """Takes the Spot machines of a job away; false where it does not run just now."""
        key = f"{P}/locations/{REGION}/customJobs/{ref.id}"
        return self.fake.ask("POST", "sandbox-api/preempt", {"name": key}).ok

    def end(self) -> None:
        """Waits for the end of all jobs, which are cancelled."""
        give_up = time.monotonic() + 60
        while running := [each for each in self.all() if "endTime" not in each]:
            assert time.monotonic() < give_up, running
            for each in running:
                self.fake.ask("POST", f"{JOBS}/{each['name'].rpartition('/')[2]}:cancel", {})
            time.sleep(0.05)

    def clear(self) -> None:
        """Deletes all jobs: with thousands of them the sandbox's listings grow slow."""
        self.end()
        for each in self.all():
            self.fake.ask("DELETE", f"{JOBS}/{each['name'].rpartition('/')[2]}")
        until(lambda: not self.all())


@pytest.fixture
def vertex_cloud(
    fake: Fake,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cloud]:
    """With a bucket and a database of claims. No job runs on."""
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", fake.token)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    bucket = {"name": GROUND["bucket"], "location": REGION.upper()}
    made = fake.ask("POST", "storage.googleapis.com/storage/v1/b", bucket, project=P.removeprefix("projects/"))
    assert made.status_code in (200, 409), made.text
    path = f"firestore.googleapis.com/v1/{P}/databases"
    made = fake.ask(
        "POST", path, {"locationId": REGION, "type": "FIRESTORE_NATIVE"}, databaseId=DATABASE.rpartition("/")[2]
    )
    assert made.status_code in (200, 409), made.text
    while fake.ask("GET", f"firestore.googleapis.com/v1/{DATABASE}").status_code == 404:
        time.sleep(0.02)

    def point(url: str) -> None:
        for name, value in variables(url).items():
            monkeypatch.setenv(name, value)

    found = Cloud(fake, VertexProxy(fake.url), point, request.node.nodeid)
    point(found.proxy.endpoint)
    fake.fault(minute_s=0.01)  # how many submissions a minute has is a matter of other tests
    yield found
    found.proxy.stop()
    fake.well()
    found.end()
