"""What stands before an AWS of ours, and refuses who has no key of the sandbox and who comes from a web page."""

import hmac
import io
from collections.abc import Callable, Iterable
from typing import Any

from .. import keys, loopback
from . import signatures
from .answers import Answer, document, send

CONTROL = "/sandbox-api/"


class Guard:
    """A WSGI application before another one, which finds a request's body in memory."""

    def __init__(self, key: str, application: Callable[..., Iterable[bytes]]) -> None:
        self._key, self._application = key, application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        chunked = environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked"
        body = environ["wsgi.input"].read(-1 if chunked else int(environ.get("CONTENT_LENGTH") or 0))
        if refused := self._refusal(environ, body):
            return send(start_response, *refused)
        environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        return self._application(environ, start_response)

    def _refusal(self, environ: dict[str, Any], body: bytes) -> Answer | None:
        host, origin = environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN")
        if foreign := loopback.foreign(int(environ["SERVER_PORT"]), host, origin):
            return document(403, {"message": foreign})
        if not environ["PATH_INFO"].startswith(CONTROL):
            return signatures.refusal(self._key, environ, body)
        told = environ.get("HTTP_AUTHORIZATION", "").encode()
        return None if hmac.compare_digest(told, f"Bearer {self._key}".encode()) else document(401, keys.WANTED)
