"""Google's REST APIs for whoever makes things there: JSON by path, pages of lists, and the objects of a bucket.

APIs are the keys of google.ROOTS, and paths are below them; their parts are quoted by the caller (google.part). A call
that may be made twice is tried again while it is not answered; one that may not is sent once. What goes wrong is
google.py's, and besides that:

Unreached       no connection came about, so nothing was sent
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

from ...diagnostics.errors import CloudRefused, CloudSilent, JobsError, NotFound, Throttled, Unreached
from ..timeouts import Timing, classify_failure, with_retries
from .rest import (
    REACH,
    Conflict,
    GarbledAnswer,
    auth_headers,
    entries,
    line,
    mapping,
    no_session_auth,
    path_segment,
    refusal,
    root_of,
)

T = TypeVar("T")

__all__ = ["Conflict", "Google", "Throttled", "Unreached", "object_path"]

JSON = "application/json"
GENERATION = "X-Goog-Generation"
"""Header of an object's bytes. Source: https://github.com/googleapis/google-resumable-media-python/blob/main/google/resumable_media/requests/_request_helpers.py"""
STORAGE = "X-GUploader-UploadID"
"""Header by which an answer is known to be Cloud Storage's. Source:
https://docs.cloud.google.com/storage/docs/json_api/v1/parameters#xguploaderuploadid"""


class Google:
    """One session, for several threads. The token is fetched with the first call, and again where it has expired."""

    def __init__(self, timing: Timing | None = None) -> None:
        self.timing = timing or Timing()
        self._lock = threading.Lock()
        self._headers: Mapping[str, str] | None = None
        self._made: Any = None
        self._last = threading.local()

    @property
    def clock(self) -> float:
        """Unix seconds, by the server's clock, when it gave its last answer to this thread; this machine's where the
        answer does not say."""
        with suppress(ValueError):
            return parsedate_to_datetime(str(getattr(self._last, "date", ""))).timestamp()
        return time.time()

    def get(self, api: str, path: str, **query: object) -> dict[str, Any]:
        """The object at the path."""
        return self._json("GET", api, path, query)

    def find(self, api: str, path: str) -> dict[str, Any] | None:
        """The object of the path's last name, or None. Raise GarbledAnswer for an answer about something else."""
        try:
            found = self.get(api, path)
        except NotFound:
            return None
        if str(found.get("name")).rpartition("/")[2] != unquote(path.rpartition("/")[2]):
            raise GarbledAnswer(f"{api} get {path}: the answer is about something else", REACH)
        return found

    def pages(self, api: str, path: str, member: str, **query: object) -> Iterator[dict[str, Any]]:
        """All objects of a list, which its answers have under the name of `member`, page by page."""
        token: object = None
        while True:
            page = self._json("GET", api, path, {**query, "pageToken": token})
            yield from (mapping(item) or {} for item in entries(page.get(member)))
            token = page.get("nextPageToken") or None
            if token is None:
                return

    def post(
        self, api: str, path: str, body: Mapping[str, Any], *, repeat: bool = False, **query: object
    ) -> dict[str, Any]:
        """The answer. Sent once, unless it may be made twice (`repeat`); after CloudSilent, other than Throttled and
        Unreached, it may have been carried out."""
        return self._json("POST", api, path, query, body, repeat=repeat)

    def patch(self, api: str, path: str, body: Mapping[str, Any], **query: object) -> dict[str, Any]:
        """The answer of a change, which made twice changes nothing more."""
        return self._json("PATCH", api, path, query, body)

    def put(self, api: str, path: str, body: Mapping[str, Any], **query: object) -> dict[str, Any]:
        """The answer of a replacement, which made twice changes nothing more."""
        return self._json("PUT", api, path, query, body)

    def delete(self, api: str, path: str, **query: object) -> dict[str, Any]:
        """The answer; empty for what is not there."""
        with suppress(NotFound):
            return self._json("DELETE", api, path, query)
        return {}

    def read(self, api: str, path: str, **query: object) -> tuple[bytes, str]:
        """The bytes of a storage object (see object_path), and its generation. Raises NotFound."""
        doing, url = _doing("GET", api, path), f"{root_of(api)}/{path}"
        answer = self._tried(lambda: self._sent("GET", url, doing, {**query, "alt": "media"}))
        generation = answer.headers.get(GENERATION)
        if not generation:
            raise GarbledAnswer(f"{doing}: the answer has no {GENERATION}", REACH)
        return answer.content, generation

    def write(self, bucket: str, name: str, data: bytes, *, generation: int | str | None, kind: str = JSON) -> str:
        """Writes an object whole, and gives its new generation. Raises Conflict unless the object is of `generation`
        before; 0: there is none; None: whatever it is.

        Source: https://docs.cloud.google.com/storage/docs/request-preconditions
        """
        doing = f"storage write {bucket}/{name}"
        # An upload is at the same host, below a path of its own.
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
                # Perhaps it was our own attempt before, whose answer was lost.
                if sent == 1 or (found := self._same(bucket, name, data)) is None:
                    raise
                return found
            except CloudRefused as refused:
                # An attempt before, whose answer was lost, may have been carried out.
                raise refused if sent == 1 else CloudSilent(refused.message) from refused

        return self._tried(once)

    def _same(self, bucket: str, name: str, data: bytes) -> str | None:
        """The generation of an object that holds these bytes."""
        with suppress(NotFound):
            there, generation = self.read("storage", object_path(bucket, name))
            return generation if there == data else None
        return None

    def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """Those that sign a call which is made elsewhere; new ones where `refused` are the ones that there are."""
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
        """One call; a second one only where the first was refused for its token, and so did nothing."""
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
        """The headers that sign a call; new ones if those that there are have been refused."""
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
    """The path of a bucket's object below the storage API's root."""
    return f"b/{path_segment(bucket)}/o/{path_segment(name)}"


def _doing(method: str, api: str, path: str) -> str:
    return f"{api} {'' if method == 'GET' else f'{method.lower()} '}{path}"


def _text(value: object) -> object:
    """A query's value; a list stays one, and its name is given with each item."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, list | tuple) else str(value)  # pyright: ignore[reportUnknownVariableType]


def _object(doing: str, answer: Any) -> dict[str, Any]:
    """The answer's JSON object. Raises GarbledAnswer for anything else: a proxy's page, or half of an answer."""
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
    """What an error answer means. That of an object's bytes is a line of text (recalled, not read on a page), as is no
    proxy's page."""
    try:
        body: Any = json.loads(answer.content)
    except ValueError:
        text = line(answer.text)
        body = {"error": {"message": text}} if text and "<" not in text and STORAGE in answer.headers else None
    return refusal(doing, answer.status_code, body)


def _unanswered(doing: str, error: Exception) -> CloudSilent:
    kind, cause = classify_failure(error)
    return kind(f"{doing}: {line(cause)}", REACH)
