"""Custom jobs of the sandbox's Vertex AI."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.google_fake import Fake, P
from tests.support.waiting import until

REGION = f"{P}/locations/us-central1"
API = "aiplatform.googleapis.com/v1"
JOBS = f"{API}/{REGION}/customJobs"
N1 = {"machineType": "n1-standard-4"}
ENDED = {f"JOB_STATE_{word}" for word in ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")}


@pytest.fixture
def vertex(fake: Fake) -> Iterator[Fake]:
    """Whatever a test leaves is cancelled and deleted."""
    fake.well()
    yield fake
    fake.well()
    fake.fault(minute_s=0.001)
    for kind in ("hyperparameterTuningJobs", "customJobs"):
        while rows := listed(fake, kind):
            for item in rows:
                fake.call("POST", f"{API}/{item['name']}:cancel", {})
            for item in rows:
                until(lambda item=item: get(fake, item)["state"] in ENDED)
                slow(fake, "DELETE", f"{API}/{item['name']}")
            names = {item["name"] for item in rows}
            until(lambda kind=kind, names=names: not names & {item["name"] for item in listed(fake, kind)})
    fake.well()


def slow(fake: Fake, http: str, path: str, body: Any = None, **query: Any) -> Any:
    """A call that waits for its place in the minute."""
    while (answer := fake.ask(http, path, body, **query)).status_code == 429:
        time.sleep(0.1)
    assert answer.ok, answer.text
    return answer.json()


def listed(fake: Fake, kind: str = "customJobs", **query: Any) -> list[Any]:
    return fake.call("GET", f"{API}/{P}/locations/-/{kind}", **query).get(kind, [])


def pool(*command: str, image: str = "busybox", replicas: int = 1, **more: Any) -> dict[str, Any]:
    container = {"imageUri": image, "command": list(command)}
    return {"machineSpec": N1, "replicaCount": replicas, "containerSpec": container, **more}


def job(*pools: dict[str, Any], name: str = "one", labels: Any = None, **spec: Any) -> dict[str, Any]:
    made = {"displayName": name, "jobSpec": {"workerPoolSpecs": list(pools) or [pool()], **spec}}
    return made | ({"labels": labels} if labels else {})


def local(code: str, **more: Any) -> dict[str, Any]:
    """A pool that runs Python here."""
    return pool("python", "-c", code, image="local/examples", **more)


def get(fake: Fake, item: Any) -> Any:
    return fake.call("GET", f"{API}/{item['name']}")


def reach(fake: Fake, item: Any, *states: str) -> Any:
    wanted = {f"JOB_STATE_{state}" for state in states}

    def there() -> Any:
        found = get(fake, item)
        assert found["state"] in wanted or found["state"] not in ENDED, found
        return found if found["state"] in wanted else None

    return until(there)


def logs(fake: Fake, item: Any, task: str = "workerpool0-0") -> list[Any]:
    number = item["name"].rpartition("/")[2]
    text = f'resource.type="ml_job" AND resource.labels.job_id="{number}" AND resource.labels.task_name="{task}"'
    body = {"resourceNames": [P], "filter": text, "pageSize": 1000}
    return fake.call("POST", "logging.googleapis.com/v2/entries:list", body).get("entries", [])


def printed(fake: Fake, item: Any, task: str = "workerpool0-0") -> list[str]:
    return [each["jsonPayload"]["message"] for each in logs(fake, item, task)]


def preempt(fake: Fake, name: str) -> requests.Response:
    return fake.ask("POST", "sandbox-api/preempt", {"name": name})


def key(item: Any) -> str:
    """A job's name below the API, as the sandbox keeps it."""
    return item["name"].replace("projects/210020003000", P)
