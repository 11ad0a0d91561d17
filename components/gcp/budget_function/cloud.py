"""Client of Google's REST APIs and of a Kubernetes API server, as far as levers need them."""

from __future__ import annotations

import base64
import json
import os
import random
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from accel.budget.levers import LeverError

METADATA = "metadata.google.internal"
OVERRIDE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_"
"""Prefix of variables with endpoints, as gcloud reads them:
https://cloud.google.com/sdk/gcloud/reference/topic/endpoint-override"""
PATHS = {"storage": "storage/v1/", "compute": "compute/v1/"}
"""Path between host and method, for APIs that have one."""
GENERATION = "X-Goog-Generation"
PASSING = frozenset({0, 408, 429, 500, 502, 503, 504})
ATTEMPTS = 4
TIMEOUT_S = 20
"""Timeout of an attempt. A function that meets a silent API server twice must finish before its own timeout."""
JSON, MERGE_PATCH = "application/json", "application/merge-patch+json"


class CallError(LeverError):
    """A call that failed with an error, or got no answer (status 0)."""

    def __init__(self, doing: str, status: int, text: str) -> None:
        super().__init__(f"{doing}: {f'HTTP {status}: ' if status else ''}{text}")
        self.status = status


class NotThere(CallError):
    """The requested object does not exist (404)."""


class Unmet(CallError):
    """The object's state is not what the caller expected (409, 412, or 400 FAILED_PRECONDITION)."""


_KINDS = {404: NotThere, 409: Unmet, 412: Unmet}


SCOPES = "https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email"
"""Scopes of a token. By default it has only the first; without the second, clusters know its account by a number, and
RBAC rules that name its e-mail address do not apply. Source:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control#forbidden_error_for_service_accounts_on_vm_instances"""


def metadata_token() -> str:
    """Return a token of the function's own account. Source:
    https://docs.cloud.google.com/run/docs/securing/service-identity#access_tokens"""
    host = os.environ.get("GCE_METADATA_HOST") or METADATA
    query = urlencode({"scopes": ",".join(SCOPES)})
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token?{query}"
    # The metadata server is on this machine: no proxy can reach it.
    local = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    body, _ = _tried("metadata token", local, urllib.request.Request(url, headers={"Metadata-Flavor": "Google"}))
    return str(json.loads(body)["access_token"])


@dataclass
class Cloud:
    """API client with one account's token, which `sign` returns. Every call is retried after a temporary error."""

    sign: Callable[[], str] = metadata_token
    _tokens: list[str] = field(default_factory=list[str])

    @property
    def token(self) -> str:
        """The account's token. It is fetched once, with the first call: a function lives shorter than a token."""
        if not self._tokens:
            self._tokens.append(self.sign())
        return self._tokens[0]

    def call(self, method: str, api: str, path: str, body: Any = None, **query: object) -> dict[str, Any]:
        """Call an API and return its JSON answer. `path` begins with the version. Raise CallError."""
        return json.loads(self.send(method, api, path, body, JSON, **query)[0] or b"{}")

    def pages(self, api: str, path: str, member: str, **query: object) -> Iterator[dict[str, Any]]:
        """Yield all objects of a list."""
        token: object = None
        while True:
            page = self.call("GET", api, path, **{**query, "pageToken": token})
            yield from page.get(member, [])
            token = page.get("nextPageToken")
            if not token:
                return

    def done(self, api: str, at: str, operation: Mapping[str, Any], wait_s: float = 60) -> None:
        """Wait for an operation's end. `at` is the path of operations, without a name. Raise CallError if the operation
        fails or takes longer."""
        end, seen = time.monotonic() + wait_s, dict(operation)
        while seen.get("status") not in (None, "DONE") and time.monotonic() < end:
            time.sleep(1)
            seen = self.call("GET", api, f"{at}/{seen['name']}")
        if error := seen.get("error"):
            raise CallError(f"{api} {seen.get('name')}", 0, str(error.get("message", error)))
        if seen.get("status") not in (None, "DONE"):
            raise CallError(f"{api} {seen.get('name')}", 0, f"is at work for {wait_s:.0f} s already")

    def send(
        self, method: str, api: str, path: str, body: Any = None, kind: str = JSON, /, **query: object
    ) -> tuple[bytes, Mapping[str, str]]:
        """Send a request and return the answer's bytes and headers. Raise CallError."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        url = root(api) + path + (f"?{urlencode(given)}" if given else "")
        return self._sent(f"{api} {method.lower()} {path}", url, method, body, kind, None)

    def kubernetes(
        self, cluster: Mapping[str, str], method: str, path: str, body: Any = None, kind: str = JSON
    ) -> dict[str, Any]:
        """Call an API server and return its JSON answer. `cluster` has its endpoint and ca_certificate (PEM in base64).
        Raise CallError."""
        endpoint = cluster["endpoint"]
        url = endpoint if "://" in endpoint else f"https://{endpoint}"
        pem = base64.b64decode(cluster["ca_certificate"]).decode()
        doing = f"kubernetes {method.lower()} {path}"
        answer, _ = self._sent(doing, url + path, method, body, kind, ssl.create_default_context(cadata=pem))
        return json.loads(answer or b"{}")

    def _sent(
        self, doing: str, url: str, method: str, body: Any, kind: str, trust: ssl.SSLContext | None
    ) -> tuple[bytes, Mapping[str, str]]:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}"} | ({"Content-Type": kind} if data is not None else {})
        handlers = [urllib.request.HTTPSHandler(context=trust)] if trust else []
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
        return _tried(doing, urllib.request.build_opener(*handlers), request)


def _tried(doing: str, opener: Any, request: urllib.request.Request) -> tuple[bytes, Mapping[str, str]]:
    refused = CallError(doing, 0, "was not sent")
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(random.uniform(0.5, 1) * 2 ** (attempt - 1))  # noqa: S311
        try:
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                return answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            body = error.read()
            kind = Unmet if b"FAILED_PRECONDITION" in body else _KINDS.get(error.code, CallError)
            refused = kind(doing, error.code, _said(body))
        except (OSError, TimeoutError) as error:
            refused = CallError(doing, 0, f"{getattr(error, 'reason', error)}")
        if refused.status not in PASSING:
            raise refused
    raise refused


def _said(body: bytes) -> str:
    """Return Google's message, or the first line of an answer without one."""
    try:
        answer: Any = json.loads(body)
        error: Any = answer.get("error", answer)
        return str(error["message"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return body.decode(errors="replace").strip().partition("\n")[0][:300]


def root(api: str) -> str:
    """Return the root URL of an API; `us-central1-aiplatform` is that of a region."""
    if api == "storage-upload":  # at the same host, below a path of its own
        return root("storage").removesuffix("storage/v1/") + "upload/storage/v1/"
    name = api.rpartition("-")[2]
    if given := os.environ.get(f"{OVERRIDE}{name.upper()}"):
        return f"{given.rstrip('/')}/"
    return f"https://{api}.googleapis.com/{PATHS.get(name, '')}"


def path_segment(text: str) -> str:
    """Quote one segment of a path."""
    return quote(text, safe="")
