"""Google Batch of the sandbox behind a proxy that breaks calls, and jobs there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from accel.clouds.timeouts import Timing
from jobs.backends.base import Request
from jobs.backends.google_batch import GoogleBatchBackend
from tests.jobs.backends import google_batch_target
from tests.jobs.backends.google_batch_target import REGION
from tests.jobs.backends.google_jobs_cloud import GoogleJobsCloud
from tests.support.google_fake import Fake, P
from tests.support.proxy import GoogleProxy
from tests.support.waiting import until

JOBS = f"batch.googleapis.com/v1/{P}/locations/{REGION}/jobs"
APIS = {"batch": "", "logging": "", "compute": "compute/v1/"}
GROUND: dict[str, Any] = {"service_account": "runner@elsewhere.iam.gserviceaccount.com"}
QUICK = Timing(
    connect_s=2, read_s=1, attempts=4, backoff_s=0.01, longest_wait_s=0.05, poll_s=0.02, silence_s=5, drain_s=0.3
)


def script(text: str, **fields: Any) -> dict[str, Any]:
    """Of a job that is this script."""
    return {"image": None, "command": [], "google_batch": {"runnables": [{"script": text}]}, **fields}


class BatchProxy(GoogleProxy):
    """Its operations are `POST create`, `POST cancel`, `GET job`, `GET jobs`, `GET task`, `GET tasks`, and of Cloud
    Logging `POST entries:list`."""

    def operation(self, line: str, headers: dict[str, str]) -> str:
        method, target, _ = line.split(" ", 2)
        parts = target.partition("?")[0].strip("/").split("/")
        if parts[-1].endswith(":cancel"):
            return f"{method} cancel"
        if parts[-1] == "jobs":
            return "POST create" if method == "POST" else "GET jobs"
        one = {"jobs": "job", "tasks": "task"}.get(parts[-2])
        return f"{method} {one or parts[-1]}"


def point(patch: pytest.MonkeyPatch, url: str) -> None:
    """Leads the client's calls there."""
    for api, path in APIS.items():
        patch.setenv(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api.upper()}", f"{url}/{api}.googleapis.com/{path}")


@dataclass
class Cloud(GoogleJobsCloud[BatchProxy]):
    """The sandbox's Google behind its proxy."""

    fake: Fake
    proxy: BatchProxy
    point: Callable[[str], None]

    def backend(self, **changes: Any) -> GoogleBatchBackend:
        return GoogleBatchBackend("batch", google_batch_target.make_target(**GROUND), timing=QUICK, **changes)

    def request(self, text: str, **fields: Any) -> Request:
        """For a job under the key of a text."""
        return google_batch_target.make_request(google_batch_target.make_target(**GROUND), text, **fields)

    def left(self, name: str = "") -> list[str]:
        """The jobs that there are, or those with this name."""
        found: list[str] = []
        query: dict[str, str] = {}
        while True:
            page = self.fake.call("GET", JOBS, **query)
            found += [each["name"].rpartition("/")[2] for each in page.get("jobs", [])]
            if "nextPageToken" not in page:
                return [each for each in found if name in each]
            query = {"pageToken": page["nextPageToken"]}

    def control(self, **asked: Any) -> None:
        """Tells the sandbox's Batch what to do."""
        self.fake.call("POST", "sandbox-api/batch", asked)

    def preempt(self, name: str) -> None:
        self.fake.call("POST", "sandbox-api/preempt", {"name": f"{P}/locations/{REGION}/jobs/{name}"})

    def clear(self) -> None:
        """Deletes all jobs."""
        for name in self.left():
            self.fake.ask("DELETE", f"{JOBS}/{name}")
        until(lambda: not self.left())


@pytest.fixture
def batch_cloud(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """Nothing is left."""
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", fake.token)
    found = Cloud(fake, BatchProxy(fake.url), lambda url: point(monkeypatch, url))
    found.point(found.proxy.endpoint)
    yield found
    found.proxy.stop()
    fake.well()
    found.clear()
