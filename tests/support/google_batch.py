"""Google Batch of the sandbox: jobs, what becomes of them, and what they told."""

import base64
import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.google_fake import Fake, P
from tests.support.waiting import until

PLACE = f"{P}/locations/us-central1"
BATCH = f"batch.googleapis.com/v1/{PLACE}"
JOBS = f"{BATCH}/jobs"
_NUMBERS = itertools.count()


@pytest.fixture
def batch(fake: Fake) -> Iterator[Fake]:
    """Whatever a test leaves is deleted, and nothing of it runs."""
    yield fake
    fake.well()
    for job in listed(fake):
        fake.call("DELETE", f"batch.googleapis.com/v1/{job['name']}")
    until(lambda: not listed(fake))


def listed(fake: Fake, **query: Any) -> list[Any]:
    return fake.call("GET", JOBS, **query).get("jobs", [])


def shell(line: str, **more: Any) -> dict[str, Any]:
    """A runnable of an image that runs here."""
    return {"container": {"imageUri": "local/tests", "entrypoint": "/bin/sh", "commands": ["-c", line]}, **more}


def body(*runnables: Any, count: int = 1, spot: bool = False, **more: Any) -> dict[str, Any]:
    """A job of these runnables; without any, of an image that only seems to run. `group`, `spec` and `policy` add to
    those parts, other names to the job."""
    image = {"container": {"imageUri": "us-docker.pkg.dev/acme/images/train:1"}}
    spec = {"runnables": list(runnables) or [image], **more.pop("spec", {})}
    model = {"provisioningModel": "SPOT"} if spot else {}
    machine = {"machineType": "e2-standard-2", **model, **more.pop("policy", {})}
    return {
        "taskGroups": [{"taskCount": count, "taskSpec": spec, **more.pop("group", {})}],
        "allocationPolicy": {"instances": [{"policy": machine}]},
        "logsPolicy": {"destination": "CLOUD_LOGGING"},
        **more,
    }


def ask(fake: Fake, job: Any, name: str = "", **query: Any) -> requests.Response:
    return fake.ask("POST", JOBS, job, jobId=name or f"job-{next(_NUMBERS)}", **query)


def create(fake: Fake, job: Any, name: str = "", **query: Any) -> str:
    """Its id."""
    answer = ask(fake, job, name, requestId=str(uuid.uuid4()), **query)
    assert answer.ok, answer.text
    return answer.json()["name"].rpartition("/")[2]


def shown(fake: Fake, name: str) -> Any:
    return fake.call("GET", f"{JOBS}/{name}")


def state(fake: Fake, name: str) -> str:
    return shown(fake, name)["status"]["state"]


def reach(fake: Fake, name: str, *wanted: str) -> Any:
    """The job in one of these states; fails where it has ended in another."""

    def there() -> Any:
        job = shown(fake, name)
        now = job["status"]["state"]
        assert now in wanted or now not in ("SUCCEEDED", "FAILED", "CANCELLED"), job["status"]
        return job if now in wanted else None

    return until(there)


def said(job: Any, kind: str = "") -> list[str]:
    rows = job["status"].get("statusEvents", [])
    return [row["description"] for row in rows if not kind or row["type"] == kind]


def tasks(fake: Fake, name: str, **query: Any) -> Any:
    return fake.call("GET", f"{JOBS}/{name}/taskGroups/group0/tasks", **query)


def task(fake: Fake, name: str, index: int = 0) -> Any:
    return fake.call("GET", f"{JOBS}/{name}/taskGroups/group0/tasks/{index}")["status"]


def codes(found: Any) -> list[int]:
    """The exit codes that a task's events tell of."""
    return [row["taskExecution"]["exitCode"] for row in found.get("statusEvents", []) if "taskExecution" in row]


def entries(fake: Fake, job: Any, log: str = "batch_task_logs") -> list[Any]:
    asked = f'logName="{P}/logs/{log}" AND labels.job_uid="{job["uid"]}"'
    answer = fake.call(
        "POST", "logging.googleapis.com/v2/entries:list", {"resourceNames": [P], "filter": asked, "pageSize": 1000}
    )
    return answer.get("entries", [])


def printed(fake: Fake, job: Any) -> list[str]:
    return [row["textPayload"] for row in entries(fake, job)]


def ran(fake: Fake, *runnables: Any, **more: Any) -> tuple[Any, list[str]]:
    """A job that was run to its end, and what it printed."""
    name = create(fake, body(*runnables, **more))
    job = reach(fake, name, "SUCCEEDED", "FAILED")
    return job, printed(fake, job)


def control(fake: Fake, **asked: Any) -> requests.Response:
    return fake.ask("POST", "sandbox-api/batch", asked)


def subscribed(fake: Fake, topic: str) -> str:
    """A new topic's name; `messages` reads from its subscription."""
    fake.call("PUT", f"pubsub.googleapis.com/v1/{P}/topics/{topic}", {})
    fake.call("PUT", f"pubsub.googleapis.com/v1/{P}/subscriptions/{topic}", {"topic": f"{P}/topics/{topic}"})
    return f"{P}/topics/{topic}"


def messages(fake: Fake, topic: str) -> list[tuple[Any, str]]:
    """Attributes and text of what has come since."""
    path = f"pubsub.googleapis.com/v1/{P}/subscriptions/{topic}"
    rows = fake.call("POST", f"{path}:pull", {"maxMessages": 1000}).get("receivedMessages", [])
    if rows:
        fake.call("POST", f"{path}:acknowledge", {"ackIds": [row["ackId"] for row in rows]})
    read = (row["message"] for row in rows)
    return [(row.get("attributes", {}), base64.b64decode(row.get("data", "")).decode()) for row in read]
