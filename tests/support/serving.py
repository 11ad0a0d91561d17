"""Servers of tests."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class QuietServer(ThreadingHTTPServer):
    """On a free port of 127.0.0.1, in a thread of its own. Says nothing of a client that went away: what it printed
    would stand in the output under test."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class OneAnswer:
    """A server with one response to everything. `calls` holds a line for each request."""

    def __init__(self, status: int, body: bytes) -> None:
        self.calls: list[str] = []
        calls = self.calls

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                calls.append(f"{self.command} {self.path} {self.headers.get('X-Amz-Target', '')}")
                self.send_response(status)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *arguments: object) -> None: ...

        self._server = QuietServer(Handler)
        self.url = self._server.url
        self.stop = self._server.stop
