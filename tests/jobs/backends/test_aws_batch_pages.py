"""What is answered in AWS's place: a web page is told as one, and not printed."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from accel.diagnostics.errors import JobsError
from jobs.backends.base import JobRef
from tests.jobs.backends.aws_batch_target import CREDENTIALS, backend_at
from tests.support.serving import QuietServer

PAGE = b"<!doctype html>\n<html lang=en><title>Not Found | Proxy</title><h1>Not Found</h1><p>The URL ...</html>"


@pytest.fixture(params=[404, 403, 502])
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(request.param)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *arguments: Any) -> None: ...

    server = QuietServer(Handler)
    yield server.url
    server.stop()


def test_a_page_of_a_proxy_is_not_printed(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    backend = backend_at(endpoint)
    with pytest.raises(JobsError) as caught:
        backend.status(JobRef("aws-batch", "us-east-1", "x"))
    assert "<" not in caught.value.message
    assert "a web page (Not Found | Proxy), not an answer of AWS" in caught.value.message
