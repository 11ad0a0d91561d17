"""A small HTTP server that answers as Google's APIs do, from recorded files."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.serving import QuietServer

RECORDED = Path(__file__).resolve().parents[1] / "stacks" / "recorded" / "google"


@dataclass(frozen=True)
class Asked:
    """One request."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]


@dataclass
class Google:
    """Answers by path. Of several answers of a path each is given once, the last one for ever."""

    url: str
    answers: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def on(self, path: str, *answers: Any) -> None:
        """An answer is a status and a body: the name of a recorded file, text as it is, or a JSON value."""
        self.answers[path] = [each if isinstance(each, tuple) else (200, each) for each in answers]

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        self.asked.append(asked)
        # A second page has a path of its own here.
        path = asked.path + "".join(f"#{asked.query['pageToken']}" for _ in [0] if "pageToken" in asked.query)
        prepared = self.answers.get(path)
        if prepared is None:
            return 404, json.dumps({"error": {"code": 404, "message": f"{path} was not found"}}).encode()
        status, body = prepared.pop(0) if len(prepared) > 1 else prepared[0]
        if isinstance(body, str):
            return status, (RECORDED / body).read_bytes() if body.endswith(".json") else body.encode()
        return status, json.dumps(body).encode()

    @property
    def variables(self) -> dict[str, str]:
        """What makes a command use this server."""
        prefix = "CLOUDSDK_API_ENDPOINT_OVERRIDES"
        return {
            f"{prefix}_COMPUTE": f"{self.url}/compute/v1/",
            f"{prefix}_CLOUDQUOTAS": f"{self.url}/",
            f"{prefix}_MONITORING": f"{self.url}/",
            "GOOGLE_OAUTH_ACCESS_TOKEN": "made-up",
        }


@contextmanager
def google() -> Generator[Google]:
    """The server, on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            status, body = found.answer(Asked(parts.path, dict(parse_qsl(parts.query)), dict(self.headers)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = QuietServer(Handler)
    found = Google(server.url)
    try:
        yield found
    finally:
        server.stop()
