"""Cloud Scheduler of the sandbox: what it refuses, and that it really calls a function, with its packages alone."""

import io
import zipfile
from importlib.metadata import version
from typing import Any

import pytest
import requests

from tests.support.google_fake import Fake, P
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake"]

AT = f"{P}/locations/us-central1"
JOBS = f"cloudscheduler.googleapis.com/v1/{AT}/jobs"
EMAIL = "ticker@accel-sandbox.iam.gserviceaccount.com"
URI = "https://tick-sandbox.a.run.app"
MAIN = """
import functions_framework, importlib.util, requests
others = importlib.util.find_spec("pulumi")
run = functions_framework.http(lambda request: (f"{request.method} {requests.__version__} {others}", 200))
"""


def job(**changes: Any) -> dict[str, Any]:
    target = {"uri": URI, "httpMethod": "POST", "oidcToken": {"serviceAccountEmail": EMAIL}}
    return {"name": f"{AT}/jobs/tick", "schedule": "* * * * *", "httpTarget": target, **changes}


@pytest.fixture(scope="module", autouse=True)
def ground(fake: Fake) -> None:
    """An account, and a function behind the address."""
    fake.call("POST", f"iam.googleapis.com/v1/{P}/serviceAccounts", {"accountId": "ticker"})
    fake.call("POST", "storage.googleapis.com/storage/v1/b", {"name": "code"}, project="accel-sandbox")
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("main.py", MAIN)
        archive.writestr("requirements.txt", f"functions-framework==3.10.2\nrequests=={version('requests')}\n")
    query = {"uploadType": "media", "name": "f.zip"}
    head = {"Authorization": f"Bearer {fake.token}"}
    url = f"{fake.url}/storage.googleapis.com/upload/storage/v1/b/code/o"
    assert requests.post(url, params=query, data=held.getvalue(), headers=head, timeout=120).ok
    source = {"storageSource": {"bucket": "code", "object": "f.zip"}}
    body = {"buildConfig": {"runtime": "python313", "entryPoint": "run", "source": source}, "serviceConfig": {}}
    fake.call("POST", f"cloudfunctions.googleapis.com/v2/{AT}/functions", body, functionId="tick")
    functions = f"cloudfunctions.googleapis.com/v2/{AT}/functions/tick"
    until(lambda: fake.call("GET", functions)["state"] == "ACTIVE")


def refused(fake: Fake, **changes: Any) -> str:
    answer = fake.ask("POST", JOBS, job(**changes))
    assert answer.status_code in (400, 404), answer.text
    return answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"schedule": "every now and then"}, "Schedule"),
        ({"schedule": "*/5 * * *"}, "Schedule"),
        ({"httpTarget": {"uri": ""}}, "URI"),
        ({"attemptDeadline": "3600s"}, "deadline"),
        ({"attemptDeadline": "5 minutes"}, "deadline"),
        ({"name": "tick"}, "formatted"),
        ({"httpTarget": {"uri": URI, "oidcToken": {"serviceAccountEmail": f"x{EMAIL}"}}}, "Service account"),
        ({"every": "5m"}, "every"),
    ],
)
def test_what_it_refuses(fake: Fake, changes: dict[str, Any], words: str) -> None:
    assert words in refused(fake, **changes)


def test_it_calls_the_function_once_its_account_may(fake: Fake) -> None:
    made = fake.call("POST", JOBS, job())
    assert (made["state"], made["attemptDeadline"], made["timeZone"]) == ("ENABLED", "180s", "UTC")
    until(lambda: fake.call("GET", f"{JOBS}/tick").get("status", {}).get("code") == 7)
    policy = {"bindings": [{"role": "roles/run.invoker", "members": [f"serviceAccount:{EMAIL}"]}]}
    fake.call("POST", f"run.googleapis.com/v2/{AT}/services/tick:setIamPolicy", {"policy": policy})

    def ended() -> Any:
        calls = fake.call("GET", "sandbox-api/functions")["calls"]
        return [each for each in calls if each["ended"]]

    (first, *_) = until(ended)
    assert (first["code"], first["output"].strip()) == (0, f"POST {version('requests')} None")
    until(lambda: len(ended()) > 1)
    fake.call("DELETE", f"{JOBS}/tick")
    assert fake.ask("GET", f"{JOBS}/tick").status_code == 404
