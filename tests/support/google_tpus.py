"""Cloud TPU of the sandbox's Google: nodes and queued resources, and how their states come."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.google_fake import Fake, P
from tests.support.waiting import until

ZONE = f"{P}/locations/us-central1-a"
TPU = f"tpu.googleapis.com/v2/{ZONE}"
LITE = {"acceleratorType": "v5litepod-16", "runtimeVersion": "v2-alpha-tpuv5-lite"}


@pytest.fixture
def tpus(fake: Fake) -> Iterator[Fake]:
    """Whatever a test leaves is deleted."""
    yield fake
    fake.well()
    everywhere = f"tpu.googleapis.com/v2/{P}/locations/-"
    for item in fake.call("GET", f"{everywhere}/queuedResources")["queuedResources"]:
        gone = fake.ask("DELETE", f"tpu.googleapis.com/v2/{item['name']}", force="true")
        assert gone.ok or gone.status_code == 404, gone.text  # a cancelled job's goes by itself meanwhile
    until(lambda: not fake.call("GET", f"{everywhere}/queuedResources")["queuedResources"])
    for item in fake.call("GET", f"{everywhere}/nodes")["nodes"]:
        finished(fake, fake.call("DELETE", f"tpu.googleapis.com/v2/{item['name']}"))
    assert fake.call("GET", f"{everywhere}/nodes")["nodes"] == []


def finished(fake: Fake, operation: Any) -> Any:
    return fake.finished("tpu.googleapis.com/v2", operation)


def node(fake: Fake, name: str = "one", **more: Any) -> Any:
    finished(fake, fake.call("POST", f"{TPU}/nodes", {**LITE, **more}, nodeId=name))
    return fake.call("GET", f"{TPU}/nodes/{name}")


def request(**more: Any) -> dict[str, Any]:
    spec = {"parent": ZONE, "nodeId": "one", "node": dict(LITE), **more.pop("spec", {})}
    return {"tpu": {"nodeSpec": [spec]}, **more}


def ask(fake: Fake, name: str = "q", body: Any = None, **query: Any) -> Any:
    return fake.ask("POST", f"{TPU}/queuedResources", body or request(), queuedResourceId=name, **query)


def queued(fake: Fake, name: str = "q", body: Any = None, **query: Any) -> Any:
    answer = ask(fake, name, body, **query)
    assert answer.ok, answer.text
    return answer.json()


def state(fake: Fake, name: str = "q") -> str:
    return fake.call("GET", f"{TPU}/queuedResources/{name}")["state"]["state"]


def reach(fake: Fake, wanted: str, name: str = "q") -> Any:
    """Waits for a state; answers all that were seen on the way."""
    seen = [state(fake, name)]

    def there() -> bool:
        now = state(fake, name)
        if now != seen[-1]:
            seen.append(now)
        return seen[-1] == wanted

    until(there)
    return seen


def said(answer: requests.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["message"]


def preempt(fake: Fake, name: str) -> requests.Response:
    return fake.ask("POST", "sandbox-api/preempt", {"name": name})
