"""Cloud Storage as programs expect it at STORAGE_EMULATOR_HOST: no credentials, and objects below their bucket's name.

In front of the sandbox's fake, which wants a token and serves the JSON API alone.
"""

import http.client
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import ClassVar
from urllib.parse import quote, unquote, urlsplit

from .google_fake import Fake
from .serving import QuietServer

OWN = {"host", "content-length", "transfer-encoding", "accept-encoding", "connection", "date", "server"}
"""Headers of one connection, which are not passed on."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: ClassVar[Fake]

    def _forward(self) -> None:
        at = urlsplit(self.fake.url)
        connection = http.client.HTTPConnection(at.netloc, timeout=60)
        given = {name: value for name, value in self.headers.items() if name.lower() not in OWN}
        given["Authorization"] = f"Bearer {self.fake.token}"
        path = f"{at.path}/storage.googleapis.com{_path(self.path)}"
        connection.request(self.command, path, self._body(), given)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in OWN:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = _forward  # noqa: N815 (http.server asks for these names)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _path(asked: str) -> str:
    """A read of /BUCKET/OBJECT, as the XML API has it, as one of the JSON API."""
    if "/storage/v1/" in asked:
        return asked
    _, bucket, name = urlsplit(asked).path.split("/", 2)
    return f"/storage/v1/b/{bucket}/o/{quote(unquote(name), safe='')}?alt=media"


@contextmanager
def storage_emulator(fake: Fake) -> Generator[str]:
    """Where it listens: a host and a port."""
    server = QuietServer(type("Handler", (_Handler,), {"fake": fake}))
    try:
        yield server.host
    finally:
        server.stop()
