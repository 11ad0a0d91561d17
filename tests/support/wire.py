"""Every request of a command, held where it leaves the process: what would go where. The answer is what was sent."""

import io
import json
import socket
import time
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import botocore.httpsession
import pytest
import websocket
from botocore.awsrequest import AWSResponse
from click.testing import CliRunner
from requests import Response
from requests.adapters import HTTPAdapter

from jobs.cli.main import jobs

from .every_target import CA

API_SERVER = "203.0.113.77"
CLOUDS = (".googleapis.com", ".amazonaws.com", ".gke.goog")
SIGNED = {"authorization", "x-amz-security-token", "x-goog-api-key", "proxy-authorization"}


MOST = 40
"""Requests of a command, and pauses: a command may wait for what these answers never bring."""


class Endless(BaseException):
    """Ends it."""


class Wire:
    """What left the process, as (host, signed)."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bool]] = []
        self._left = 0

    def run(self, *arguments: str) -> str:
        """What a command prints."""
        self._left = MOST
        try:
            return CliRunner().invoke(jobs, arguments, prog_name="jobs").output
        except Endless:
            return "waits"

    def count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Endless

    def out(self, url: str, headers: Any, body: Any = None) -> bytes:
        self.count()
        self.sent.append((urlsplit(str(url)).hostname or "", any(str(each).lower() in SIGNED for each in headers)))
        if "/clusters/" in url:
            return json.dumps({"endpoint": API_SERVER, "masterAuth": {"clusterCaCertificate": CA}}).encode()
        try:
            sent = json.loads(body or b"{}")
        except ValueError:
            sent = {}
        name = f"{urlsplit(url).path.removeprefix('/v1/')}/1"
        return json.dumps({"name": name, "generation": "1", "updateTime": "2026-01-01T00:00:00Z", **sent}).encode()

    def strangers(self) -> list[str]:
        return [host for host, signed in self.sent if signed and host != API_SERVER and not host.endswith(CLOUDS)]


def held(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """From now on, with credentials of both clouds."""
    made = Wire()
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "token")
    monkeypatch.setenv("ACCEL_GOOGLE_ACCOUNT", "me@acme.example")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "x")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)

    def of_requests(adapter: Any, request: Any, **options: Any) -> Response:
        answer = Response()
        answer.status_code, answer.request, answer.url = 200, request, request.url
        answer.headers["X-Goog-Generation"] = "1"
        answer.raw = io.BytesIO(made.out(request.url, request.headers, request.body))
        return answer

    def of_botocore(session: Any, request: Any) -> AWSResponse:
        raw: Any = io.BytesIO(made.out(request.url, request.headers, request.body))
        raw.stream = lambda *_: iter([raw.read()])
        return AWSResponse(request.url, 200, {}, raw)

    def of_urllib(opener: Any, request: Any, *rest: Any, **options: Any) -> Any:
        made.out(request.full_url, [*request.headers, *request.unredirected_hdrs])
        raise OSError("no network")

    def of_sockets(url: str, header: Any = (), **options: Any) -> Any:
        made.out(url, [each.partition(":")[0] for each in header])
        raise OSError("no network")

    monkeypatch.setattr(HTTPAdapter, "send", of_requests)
    monkeypatch.setattr(botocore.httpsession.URLLib3Session, "send", of_botocore)
    monkeypatch.setattr(urllib.request.OpenerDirector, "open", of_urllib)
    monkeypatch.setattr(websocket, "create_connection", of_sockets)
    monkeypatch.setattr(socket, "create_connection", _none)
    monkeypatch.setattr(time, "sleep", lambda _: made.count())
    return made


def _none(*_: Any, **__: Any) -> Any:
    raise OSError("no network")
