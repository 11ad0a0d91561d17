"""Google's REST APIs as the provider calls them: a token, operations waited for, errors in googleapi's words."""

import threading
import time
from pathlib import Path
from typing import Any

import requests

Json = dict[str, Any]
BASES = {
    "compute": "compute.googleapis.com/compute/v1",
    "container": "container.googleapis.com/v1",
    "iam": "iam.googleapis.com/v1",
    "artifactregistry": "artifactregistry.googleapis.com/v1",
    "secretmanager": "secretmanager.googleapis.com/v1",
    "cloudresourcemanager": "cloudresourcemanager.googleapis.com/v1",
    "serviceusage": "serviceusage.googleapis.com/v1",
    "storage": "storage.googleapis.com/storage/v1",
    "upload": "storage.googleapis.com/upload/storage/v1",
    "file": "file.googleapis.com/v1",
    "tpu": "tpu.googleapis.com/v2",
    "pubsub": "pubsub.googleapis.com/v1",
    "firestore": "firestore.googleapis.com/v1",
    "aiplatform": "aiplatform.googleapis.com/v1",
    "billingbudgets": "billingbudgets.googleapis.com/v1",
    "monitoring": "monitoring.googleapis.com/v3",
    "cloudfunctions": "cloudfunctions.googleapis.com/v2",
    "cloudscheduler": "cloudscheduler.googleapis.com/v1",
    "run": "run.googleapis.com/v2",
    "cloudbilling": "cloudbilling.googleapis.com/v1",
}
_PASSING = {429, 500, 502, 503}
_ATTEMPTS = 4
_POLL_S = 0.05
_WAIT_S = 120


class GoogleError(Exception):
    """Error of an API, worded as googleapi's Go client words it."""

    def __init__(self, code: int, message: str, reason: str = "") -> None:
        super().__init__(f"googleapi: Error {code}: {message}" + (f", {reason}" if reason else ""))
        self.code = code


class OperationError(Exception):
    """Error in which an operation ended."""


class Google:
    def __init__(self, url: str, home: Path) -> None:
        self.url, self._home = url.rstrip("/"), home
        self.editing = threading.Lock()  # for values that are read, changed and written back, one at a time
        self._threads = threading.local()  # a session for each, with its connection: requests promises no sharing

    @property
    def token(self) -> str:
        return (self._home / "key").read_text().strip()

    def call(self, http: str, api: str, path: str, body: Any = None, **query: Any) -> Json:
        """Send one request, and retry it where that may help. Raises GoogleError."""
        attempt, answer = 1, self._send(http, api, path, body, query)
        while answer.status_code in _PASSING and attempt < _ATTEMPTS:
            time.sleep(0.05 * 2**attempt)
            attempt, answer = attempt + 1, self._send(http, api, path, body, query)
        if answer.status_code >= 400:
            error = answer.json()["error"]
            reasons = [each.get("reason", "") for each in error.get("errors", [])]
            raise GoogleError(error["code"], error["message"], reasons[0] if reasons else "")
        return answer.json() if answer.content else {}

    def _send(self, http: str, api: str, path: str, body: Any, query: Json) -> requests.Response:
        data, sent = (body, None) if isinstance(body, (str, bytes)) else (None, body)
        data = data.encode() if isinstance(data, str) else data
        where, headers = f"{self.url}/{BASES[api]}/{path}", {"Authorization": f"Bearer {self.token}"}
        if not hasattr(self._threads, "session"):
            self._threads.session = requests.Session()
        session: requests.Session = self._threads.session
        return session.request(http, where, params=query, json=sent, data=data, headers=headers, timeout=60)

    def get(self, api: str, path: str, **query: Any) -> Json | None:
        try:
            return self.call("GET", api, path, **query)
        except GoogleError as error:
            if error.code == 404:
                return None
            raise

    def done(self, api: str, http: str, path: str, body: Any = None, *, doing: str, **query: Any) -> Json:
        """Send a request that may start an operation, and wait for its end. Raises OperationError."""
        answer = self.call(http, api, path, body, **query)
        if not _is_operation(answer):
            return answer
        at = _where(api, answer)
        give_up = time.monotonic() + _WAIT_S
        while not (answer.get("done") or answer.get("status") == "DONE"):
            if time.monotonic() > give_up:
                raise OperationError(f"Error waiting for {doing}: timeout while waiting for state to become 'DONE'")
            time.sleep(_POLL_S)
            answer = self.call("GET", api, at)
        if why := _failure(answer):
            raise OperationError(f"Error waiting for {doing}: {why}")
        return answer


def _is_operation(answer: Json) -> bool:
    named = str(answer.get("name", ""))
    return answer.get("kind") == "compute#operation" or named.startswith("operation-") or "/operations/" in f"/{named}"


def _where(api: str, operation: Json) -> str:
    if link := operation.get("selfLink"):
        return str(link).partition("/compute/v1/" if api == "compute" else "/v1/")[2]
    return str(operation["name"])


def _failure(operation: Json) -> str:
    error = operation.get("error") or {}
    errors = error.get("errors")
    return "; ".join(each["message"] for each in errors) if errors else str(error.get("message", ""))
