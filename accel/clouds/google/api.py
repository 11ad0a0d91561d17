"""Google's REST APIs for callers that change resources: JSON by path, pages of lists, and the objects of a bucket.

APIs are the keys of rest.ROOTS, and paths are relative to them; the caller quotes their parts (rest.path_segment). An
idempotent call is retried while there is no response; any other is sent once. Errors are those of rest.py, and in
addition:

Unreached       no connection was established, so nothing was sent
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import unquote

from accel.json_values import entries, mapping, object_at

from ...diagnostics.errors import CloudRefused, CloudSilent, JobsError, NotFound, Throttled, Unreached
from ..timeouts import Timing, classify_failure, with_retries
from .rest import REACH, Conflict, GarbledAnswer, auth_headers, line, no_session_auth, path_segment, refusal, root_of

T = TypeVar("T")

__all__ = ["Conflict", "Google", "Throttled", "Unreached", "object_path"]

JSON = "application/json"
GENERATION = "X-Goog-Generation"
"""Header with the generation of an object's bytes. Source:
https://github.com/googleapis/google-resumable-media-python/blob/main/google/resumable_media/requests/_request_helpers.py"""
STORAGE = "X-GUploader-UploadID"
"""Header that identifies a response as Cloud Storage's. Source:
https://docs.cloud.google.com/storage/docs/json_api/v1/parameters#xguploaderuploadid"""


class Google:
    """One session, for several threads. The token is fetched with the first call, and again after it has expired."""

    def __init__(self, timing: Timing | None = None) -> None:
        self.timing = timing or Timing()
        self._lock = threading.Lock()
        self._headers: Mapping[str, str] | None = None
        self._made: Any = None
        self._last = threading.local()

    @property
    def clock(self) -> float:
        """Unix seconds of the server at its last response to this thread, or of this machine if it had no date."""
        with suppress(ValueError):
            return parsedate_to_datetime(str(getattr(self._last, "date", ""))).timestamp()
        return time.time()

    def get(self, api: str, path: str, **query: object) -> dict[str, Any]:
        return self._json("GET", api, path, query)

    def find(self, api: str, path: str) -> dict[str, Any] | None:
        """Return None if there is none. Raise GarbledAnswer for a response about another object."""
        try:
            found = self.get(api, path)
        except NotFound:
            return None
        if str(found.get("name")).rpartition("/")[2] != unquote(path.rpartition("/")[2]):
            raise GarbledAnswer(f"{api} get {path}: the answer is about something else", REACH)
        return found

    def pages(self, api: str, path: str, member: str, **query: object) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list. `member` is the field that holds them in each response."""
        token: object = None
        while True:
            page = self._json("GET", api, path, {**query, "pageToken": token})
            yield from (object_at(item) for item in entries(page.get(member)))
            token = page.get("nextPageToken") or None
            if token is None:
                return

    def post(
        self, api: str, path: str, body: Mapping[str, Any], *, repeat: bool = False, **query: object
    ) -> dict[str, Any]:
        """Send it once, unless `repeat` declares it idempotent. After CloudSilent, other than Throttled and Unreached,
        it may have been carried out."""
        return self._json("POST", api, path, query, body, repeat=repeat)

    def patch(self, api: str, path: str, body: Mapping[str, Any], **query: object) -> dict[str, Any]:
        """Send a change, which has to be idempotent."""
        return self._json("PATCH", api, path, query, body)

    def put(self, api: str, path: str, body: Mapping[str, Any], **query: object) -> dict[str, Any]:
        """Send a replacement, which has to be idempotent."""
        return self._json("PUT", api, path, query, body)

    def delete(self, api: str, path: str, **query: object) -> dict[str, Any]:
        with suppress(NotFound):
            return self._json("DELETE", api, path, query)
        return {}

    def read(self, api: str, path: str, **query: object) -> tuple[bytes, str]:
        """Return the bytes of a storage object (see object_path), and its generation. Raise NotFound."""
        doing, url = _doing("GET", api, path), f"{root_of(api)}/{path}"
        answer = self._tried(lambda: self._sent("GET", url, doing, {**query, "alt": "media"}))
        generation = answer.headers.get(GENERATION)
        if not generation:
            raise GarbledAnswer(f"{doing}: the answer has no {GENERATION}", REACH)
        return answer.content, generation

    def write(self, bucket: str, name: str, data: bytes, *, generation: int | str | None, kind: str = JSON) -> str:
        """Write a whole object and return its new generation. Raise Conflict unless it has `generation` before (0: it
        does not exist; None: any is accepted). Source:
        https://docs.cloud.google.com/storage/docs/request-preconditions"""
        doing = f"storage write {bucket}/{name}"
        # Uploads use the same host, with a path of their own.
        root = root_of("storage").removesuffix("storage/v1")
        url = f"{root}upload/storage/v1/b/{path_segment(bucket)}/o"
        query = {"uploadType": "media", "name": name, "ifGenerationMatch": generation}
        sent = 0

        def once() -> str:
            nonlocal sent
            sent += 1
            try:
                answer = _object(doing, self._sent("POST", url, doing, query, data, kind))
                if not answer.get("generation"):
                    raise GarbledAnswer(f"{doing}: the answer has no generation", REACH)
                return str(answer["generation"])
            except Conflict:
                # This may be our own previous attempt, whose response was lost.
                if sent == 1 or (found := self._same(bucket, name, data)) is None:
                    raise
                return found
            except CloudRefused as refused:
                # A previous attempt, whose response was lost, may have been carried out.
                raise refused if sent == 1 else CloudSilent(refused.message) from refused

        return self._tried(once)

    def _same(self, bucket: str, name: str, data: bytes) -> str | None:
        with suppress(NotFound):
            there, generation = self.read("storage", object_path(bucket, name))
            return generation if there == data else None
        return None

    def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """Return authorization for a call made elsewhere; a new one if the server `refused` the current."""
        return self._signed(refused)

    def _json(
        self,
        method: str,
        api: str,
        path: str,
        query: Mapping[str, object],
        body: Mapping[str, Any] | None = None,
        *,
        repeat: bool = True,
    ) -> dict[str, Any]:
        doing, url = _doing(method, api, path), f"{root_of(api)}/{path}"
        data = None if body is None else json.dumps(body).encode()
        return self._tried(lambda: _object(doing, self._sent(method, url, doing, query, data)), repeat=repeat)

    def _tried(self, call: Callable[[], T], *, repeat: bool = True) -> T:
        return with_retries(self.timing, call) if repeat else call()

    def _sent(
        self,
        method: str,
        url: str,
        doing: str,
        query: Mapping[str, object],
        data: bytes | None = None,
        kind: str = JSON,
    ) -> Any:
        """Send a second request only if the first was refused for its token and therefore did nothing."""
        failures = import_module("requests.exceptions")
        refused: Mapping[str, str] | None = None
        for again in (False, True):
            signed_with = self._signed(refused)
            headers = {**signed_with, **({} if data is None else {"Content-Type": kind})}
            try:
                answer = self._session.request(
                    method,
                    url,
                    params={name: _text(value) for name, value in query.items() if value is not None},
                    data=data,
                    headers=headers,
                    timeout=(self.timing.connect_s, self.timing.read_s),
                    allow_redirects=False,
                )
            except failures.RequestException as error:
                raise _unanswered(doing, error) from error
            self._last.date = answer.headers.get("Date")
            if answer.status_code == 401 and not again:
                refused = signed_with
                continue
            if not 200 <= answer.status_code < 300:
                raise _refused(doing, answer)
            return answer
        raise AssertionError

    def _signed(self, refused: Mapping[str, str] | None) -> Mapping[str, str]:
        with self._lock:
            if self._headers is None or self._headers is refused:
                self._headers = auth_headers()
            return self._headers

    @property
    def _session(self) -> Any:
        with self._lock:
            if self._made is None:
                self._made = import_module("requests").Session()
                self._made.auth = no_session_auth
            return self._made


def object_path(bucket: str, name: str) -> str:
    return f"b/{path_segment(bucket)}/o/{path_segment(name)}"


def _doing(method: str, api: str, path: str) -> str:
    return f"{api} {'' if method == 'GET' else f'{method.lower()} '}{path}"


def _text(value: object) -> object:
    """Keep a list, whose name is repeated for each item."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, list | tuple) else str(value)  # pyright: ignore[reportUnknownVariableType]


def _object(doing: str, answer: Any) -> dict[str, Any]:
    """Raise GarbledAnswer for anything but a JSON object, such as a proxy's page or a truncated response."""
    if answer.status_code == 204:
        return {}
    try:
        body = mapping(json.loads(answer.content))
    except ValueError:
        body = None
    if body is None:
        raise GarbledAnswer(f"{doing}: the answer is not a JSON object", REACH)
    return body


def _refused(doing: str, answer: Any) -> JobsError:
    """Accept a line of text for an object's bytes (recalled, not read on a page), unlike a proxy's page."""
    try:
        body: Any = json.loads(answer.content)
    except ValueError:
        text = line(answer.text)
        body = {"error": {"message": text}} if text and "<" not in text and STORAGE in answer.headers else None
    return refusal(doing, answer.status_code, body)


def _unanswered(doing: str, error: Exception) -> CloudSilent:
    kind, cause = classify_failure(error)
    return kind(f"{doing}: {line(cause)}", REACH)
