"""Kubernetes API server over HTTPS: JSON objects by path. For its errors, see responses.py."""

import hashlib
import ipaddress
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from accel.json_values import entries, object_at

from ...diagnostics.errors import BadInput, CloudSilent, NotFound
from ...folders import cache, write
from ..google.rest import no_session_auth
from ..timeouts import Timing, classify_failure, with_retries
from .responses import REACH, StaleList, describe_path, line, object_of, refusal

PAGE = 500
"""Of a list; kubectl uses the same number."""
MERGE_PATCH = "application/merge-patch+json"


class Api:
    """One API server. Paths are those of the API (`/api/v1/nodes`); bodies and responses are its own JSON. `endpoint`
    is a host, or host:port, with TLS; plain http is accepted for this machine only. `ca_pem` is the authority that
    signed the server's certificate; None: those that the system trusts. `sign` returns a bearer token; it is called
    first, and again when the server no longer accepts the token."""

    def __init__(
        self, endpoint: str, ca_pem: str | None, sign: Callable[[], str], *, timing: Timing | None = None
    ) -> None:
        self.url = _url(endpoint)
        self.timing = timing or Timing()
        self._verify: str | bool = True if ca_pem is None else str(_ca_file(ca_pem))
        self._sign = sign
        self._token: str | None = None
        self._made: Any = None

    def get(self, path: str, **query: object) -> dict[str, Any]:
        return self._repeated("GET", path, query)

    def items(self, path: str, **query: object) -> Iterator[dict[str, Any]]:
        """Yield objects page by page. If the continue token expires in between (410), the list continues with what is
        there now.
        https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks"""
        token: str | None = None
        while True:
            try:
                page = self._repeated("GET", path, {"limit": PAGE, **query, "continue": token})
            except StaleList as stale:
                if stale.token == token:
                    raise
                token = stale.token
                continue
            yield from (object_at(item) for item in entries(page.get("items")))
            token = object_at(page, "metadata").get("continue") or None
            if token is None:
                return

    def first(self, path: str, limit: int, **query: object) -> list[dict[str, Any]]:
        """Return at most `limit` objects, with one call."""
        page = self._repeated("GET", path, {"limit": limit, **query})
        return [object_at(item) for item in entries(page.get("items"))]

    def create(self, path: str, body: Mapping[str, Any], **query: object) -> dict[str, Any]:
        """Send it once. Raise AlreadyExists. After a CloudSilent that is not Throttled, the object may exist."""
        return object_of(f"create {describe_path(path)}", self._call("POST", path, query, body))

    def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Apply a merge patch, which is idempotent."""
        return self._repeated("PATCH", path, {}, body)

    def delete(self, path: str, propagation: str = "Background") -> None:
        with suppress(NotFound):
            self._repeated("DELETE", path, {"propagationPolicy": propagation})

    def lines(self, path: str, **query: object) -> Iterator[str]:
        """Yield lines as they arrive. Raise CloudSilent, also in the middle of it."""
        failures = import_module("requests.exceptions")
        with self._call("GET", path, query, stream=True) as answer:
            try:
                for read in answer.iter_lines():
                    yield read.decode("utf-8", "replace")
            except failures.RequestException as error:
                raise self._unanswered(f"get {describe_path(path)}", error) from error

    def socket(self, path: str, query: list[tuple[str, str]], protocols: list[str]) -> Any:
        websocket = import_module("websocket")
        url = self.url.replace("http", "ws", 1) + path + "?" + "&".join(f"{k}={quote(v, safe='')}" for k, v in query)
        options = {"ca_certs": self._verify} if isinstance(self._verify, str) else {}
        for again in (False, True):
            try:
                return websocket.create_connection(
                    url,
                    header=[f"Authorization: Bearer {self._bearer()}"],
                    subprotocols=protocols,
                    sslopt=options,
                    timeout=self.timing.connect_s,
                )
            except websocket.WebSocketBadStatusException as error:
                if error.status_code == 401 and not again:
                    self._token = None
                    continue
                body: Any = error.resp_body or b""
                raise refusal(f"exec {describe_path(path)}", int(error.status_code or 0), body) from error
            except (websocket.WebSocketException, OSError) as error:
                raise CloudSilent(f"exec {describe_path(path)}: {line(error)}", REACH) from error
        raise AssertionError

    def _repeated(
        self, method: str, path: str, query: Mapping[str, object], body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        doing = f"{VERBS[method]} {describe_path(path)}"
        return with_retries(self.timing, lambda: object_of(doing, self._call(method, path, query, body)))

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, object],
        body: Mapping[str, Any] | None = None,
        stream: bool = False,
    ) -> Any:
        """Send a second request only if the first was refused for its token and therefore did nothing."""
        failures = import_module("requests.exceptions")
        doing = f"{VERBS[method]} {describe_path(path)}"
        for again in (False, True):
            headers = {"Authorization": f"Bearer {self._bearer()}"}
            if body is not None:
                headers["Content-Type"] = MERGE_PATCH if method == "PATCH" else "application/json"
            try:
                answer = self._session.request(
                    method,
                    self.url + path,
                    params={name: _text(value) for name, value in query.items() if value is not None},
                    data=None if body is None else json.dumps(body).encode(),
                    headers=headers,
                    timeout=(self.timing.connect_s, self.timing.read_s),
                    # Passed with each call: REQUESTS_CA_BUNDLE would replace the session's value.
                    verify=self._verify,
                    allow_redirects=False,
                    stream=stream,
                )
            except failures.RequestException as error:
                raise self._unanswered(doing, error) from error
            if answer.status_code == 401 and not again:
                self._token = None
                continue
            if answer.status_code not in (200, 201, 202):
                raise refusal(doing, answer.status_code, answer.content)
            return answer
        raise AssertionError

    def _unanswered(self, doing: str, error: Exception) -> CloudSilent:
        kind, cause = classify_failure(error)
        where = self.url.partition("://")[2]
        return kind(f"{doing}: the cluster at {where} does not answer: {line(cause)}", REACH)

    def _bearer(self) -> str:
        if self._token is None:
            self._token = self._sign()
        return self._token

    @property
    def _session(self) -> Any:
        if self._made is None:
            self._made = import_module("requests").Session()
            self._made.auth = no_session_auth
        return self._made


VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}


def _url(endpoint: str) -> str:
    url = endpoint if "://" in endpoint else f"https://{endpoint}"
    parts = urlsplit(url)
    if not parts.hostname or parts.scheme not in ("http", "https") or parts.path.strip("/"):
        raise BadInput(f"endpoint: {endpoint!r}: must be a host, or host:port, of a Kubernetes API server")
    if parts.scheme == "http" and not _loopback(parts.hostname):
        raise BadInput(f"endpoint: {endpoint!r}: credentials go to another machine by TLS only")
    return url.rstrip("/")


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _ca_file(pem: str) -> Path:
    """Return a file, since TLS libraries require one. The certificate is public; the name is a hash of its content."""
    name = f"ca-{hashlib.sha256(pem.encode()).hexdigest()[:16]}.pem"
    path = cache() / name
    try:
        if not path.exists() or path.read_text() != pem:
            write(path, pem)
    except OSError:
        # The cache is not writable: use a folder of this process.
        path = Path(tempfile.mkdtemp(prefix="accel-")) / name
        path.write_text(pem)
    return path


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
