"""Servers of tests."""

import sys
from http.server import ThreadingHTTPServer


class QuietServer(ThreadingHTTPServer):
    """On 127.0.0.1. Says nothing of a client that went away: what it printed would stand in the output under test."""

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]
