"""What end-to-end tests of jobs on Google Cloud share: the API of its sandbox, and what a command says of a job."""

import json
from collections.abc import Callable
from typing import Any

import requests

from tests.support.engine import Sandbox
from tests.support.waiting import until

from .conftest import Shell

PROJECT = "accel-sandbox"

Call = Callable[..., Any]


def preempt(call: Call, ref: str, kind: str = "jobs") -> None:
    """Takes away the machines of a job: of Google Batch, or of the kind customJobs."""
    name = f"projects/{PROJECT}/locations/us-central1/{kind}/{ref.rpartition('/')[2]}"
    call("POST", "sandbox-api/preempt", {"name": name})


def caller(sandbox: Sandbox) -> Call:
    """A call of the sandbox's Google, or of its control."""
    told = json.loads((sandbox.home / "google.json").read_text())
    head = {"Authorization": f"Bearer {sandbox.variables['GOOGLE_OAUTH_ACCESS_TOKEN']}"}

    def call(method: str, path: str, body: Any = None) -> Any:
        answer = requests.request(method, f"{told['url']}/{path}", json=body, headers=head, timeout=120)
        assert answer.ok, answer.text
        return answer.json()

    return call


def status(shell: Shell, ref: str) -> dict[str, Any]:
    return json.loads(shell.jobs("get", ref, "-o", "json"))


def printed(shell: Shell, ref: str, text: str) -> None:
    until(lambda: text in shell.jobs("logs", ref))
