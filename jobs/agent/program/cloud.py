"""Agent's client of Google: the metadata server, Cloud Storage, Cloud Logging, Secret Manager, deletions."""

from __future__ import annotations

import base64
import binascii
import json
import os
import random
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote, urlencode

METADATA = "metadata.google.internal"
ROOTS = {
    "storage": "https://storage.googleapis.com/",
    "logging": "https://logging.googleapis.com/",
    "secretmanager": "https://secretmanager.googleapis.com/",
}
"""Root URLs of the APIs. The variable ACCEL_<NAME>_ROOT overrides one."""
PASSING = frozenset({408, 429, 500, 502, 503, 504})
TIMEOUT_S = 30
LONGEST_PAUSE_S = 15.0


class CallError(Exception):
    """A call that failed with an error, or got no answer in time (status 0)."""

    def __init__(self, doing: str, status: int, text: str) -> None:
        super().__init__(f"{doing}: {f'HTTP {status}: ' if status else ''}{text}")
        self.status = status


class Cloud:
    """API client with the machine's own account, from the metadata server. Several threads may use it."""

    def __init__(self) -> None:
        self._metadata = f"http://{os.environ.get('GCE_METADATA_HOST') or METADATA}/computeMetadata/v1/"
        # The metadata server is on this machine: no proxy can reach it.
        self._local = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._far = urllib.request.build_opener()
        self._token: tuple[str, float] = ("", 0.0)

    def metadata(self, path: str, *, attempts: int = 6) -> str | None:
        """Return a value of the metadata server, None if there is none."""
        try:
            return self._ask(self._local, "GET", self._metadata + path, None, _FLAVOR, attempts)[0].decode()
        except CallError as refused:
            if refused.status == 404:
                return None
            raise

    def preempted(self, etag: str, wait_s: int) -> tuple[bool, str]:
        """Return whether the machine is being preempted, and the value's etag, once it differs from `etag` or after
        `wait_s` seconds. Source:
        https://docs.cloud.google.com/compute/docs/metadata/querying-metadata#waitforchange"""
        query = urlencode({"wait_for_change": "true", "last_etag": etag, "timeout_sec": wait_s})
        url = f"{self._metadata}instance/preempted?{query}"
        body, headers = self._ask(self._local, "GET", url, None, _FLAVOR, 1, wait_s + 10)
        return body.strip() == b"TRUE", headers.get("etag", "0")

    def tell(self, key: str, text: str) -> None:
        """Write a guest attribute. It is optional: an error is only printed. Source:
        https://docs.cloud.google.com/compute/docs/metadata/manage-guest-attributes"""
        url = f"{self._metadata}instance/guest-attributes/accel/{key}"
        try:
            self._ask(self._local, "PUT", url, text.encode(), _FLAVOR, 2)
        except CallError as refused:
            print(f"accel: {refused}", flush=True)  # noqa: T201

    def token(self) -> str:
        """Return a token of the machine's service account, valid for at least a minute."""
        text, until = self._token
        if time.monotonic() >= until - 60:
            answer = json.loads(self.metadata("instance/service-accounts/default/token") or "{}")
            text = str(answer.get("access_token", ""))
            self._token = text, time.monotonic() + float(answer.get("expires_in", 0))
        return text

    def call(
        self, method: str, url: str, body: Any = None, *, attempts: int = 6, kind: str = "application/json"
    ) -> bytes:
        """Call an API and return its answer. Retry after temporary errors. Raise CallError."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        for again in (False, True):
            headers = {"Authorization": f"Bearer {self.token()}", "Content-Type": kind}
            try:
                return self._ask(self._far, method, url, data, headers, attempts)[0]
            except CallError as refused:
                if refused.status != 401 or again:
                    raise
                self._token = ("", 0.0)
        raise AssertionError

    def read(self, bucket: str, name: str) -> bytes | None:
        """Return an object's bytes, None if there is none."""
        try:
            return self.call("GET", f"{_root('storage')}storage/v1/b/{_part(bucket)}/o/{_part(name)}?alt=media")
        except CallError as refused:
            if refused.status == 404:
                return None
            raise

    def write(self, bucket: str, name: str, data: bytes, *, once: bool, kind: str = "application/json") -> bool:
        """Write an object; with `once`, only if there is none. Return whether it was written. Source:
        https://docs.cloud.google.com/storage/docs/request-preconditions"""
        query = {"uploadType": "media", "name": name, **({"ifGenerationMatch": "0"} if once else {})}
        url = f"{_root('storage')}upload/storage/v1/b/{_part(bucket)}/o?{urlencode(query)}"
        try:
            self.call("POST", url, data, attempts=10, kind=kind)
        except CallError as refused:
            if refused.status == 412:
                return False
            raise
        return True

    def names(self, bucket: str, prefix: str) -> list[str]:
        """Return the names of the objects below a prefix."""
        found: list[str] = []
        query = {"prefix": prefix, "fields": "items/name,nextPageToken"}
        while True:
            answer = json.loads(
                self.call("GET", f"{_root('storage')}storage/v1/b/{_part(bucket)}/o?{urlencode(query)}")
            )
            found += [item["name"] for item in answer.get("items", [])]
            if not answer.get("nextPageToken"):
                return found
            query["pageToken"] = answer["nextPageToken"]

    def log(self, body: dict[str, Any]) -> None:
        """Write log entries. Make one attempt: the caller keeps them until they are written. Source:
        https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/entries/write"""
        self.call("POST", f"{_root('logging')}v2/entries:write", body, attempts=1)

    def secret(self, version: str) -> str:
        """Return a secret's value. Raise CallError without any part of the answer. Source:
        https://docs.cloud.google.com/secret-manager/docs/reference/rest/v1/projects.secrets.versions/access"""
        doing = f"secret {version}"
        try:
            answer = json.loads(self.call("GET", f"{_root('secretmanager')}v1/{quote(version)}:access"))
            return base64.b64decode(answer["payload"]["data"], validate=True).decode()
        except CallError as refused:
            raise CallError(doing, refused.status, "it cannot be read; the machine's account needs the role") from None
        except (KeyError, TypeError, ValueError, binascii.Error):
            # Whatever was answered is perhaps the secret: it is not shown, nor is what Python says of it.
            raise CallError(doing, 0, "the answer holds no text") from None

    def _ask(
        self,
        opener: urllib.request.OpenerDirector,
        method: str,
        url: str,
        data: bytes | None,
        headers: dict[str, str],
        attempts: int,
        timeout_s: float = TIMEOUT_S,
    ) -> tuple[bytes, dict[str, str]]:
        """Return the body and headers (in lower case) of an answer. Raise CallError."""
        doing = f"{method} {url.partition('?')[0]}"
        refused = CallError(doing, 0, "was not tried")
        for attempt in range(attempts):
            if attempt:
                longest = min(0.5 * 2**attempt, LONGEST_PAUSE_S)
                time.sleep(random.uniform(longest / 2, longest))  # noqa: S311
            request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310
            try:
                with opener.open(request, timeout=timeout_s) as answer:
                    return answer.read(), {name.lower(): value for name, value in answer.headers.items()}
            except urllib.error.HTTPError as error:
                refused = CallError(doing, error.code, _told(error))
                if error.code not in PASSING:
                    raise refused from None
            except (OSError, ValueError, urllib.error.URLError) as error:
                refused = CallError(doing, 0, str(error) or type(error).__name__)
        raise refused


_FLAVOR = {"Metadata-Flavor": "Google"}


def _root(api: str) -> str:
    return os.environ.get(f"ACCEL_{api.upper()}_ROOT") or ROOTS[api]


def _part(text: str) -> str:
    return quote(text, safe="")


def _told(error: urllib.error.HTTPError) -> str:
    """Return Google's message in one short line."""
    try:
        text = error.read(4096).decode("utf-8", "replace")
        told = json.loads(text)["error"]["message"]
    except (OSError, ValueError, KeyError, TypeError):
        told = error.reason
    return " ".join(str(told).split())[:400]
