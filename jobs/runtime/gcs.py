"""Client for the objects of a Cloud Storage bucket, with the JSON API and the standard library. On Google's machines
the metadata server provides the token of the service account. Elsewhere google-auth does, if the image has it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from .s3 import StoreError

ROOT = "https://storage.googleapis.com/"
"""Default; ACCEL_STORAGE_ROOT overrides it."""
TOKEN = "GOOGLE_OAUTH_ACCESS_TOKEN"  # noqa: S105, a variable's name
PASSING = frozenset({0, 401, 408, 429, 500, 502, 503, 504})
ATTEMPTS = 6
TIMEOUT_S = 60
PART = 64 << 20
"""Bytes above which a file is uploaded in parallel parts, which are then composed into one object."""
PARTS = 32
"""Maximum number of parts that Google composes. Source: https://docs.cloud.google.com/storage/docs/composite-objects"""
CONNECTIONS = 8
BLOCK = 1 << 20
MARK = ".part-"


class Gcs:
    """A bucket. Several threads can share it."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._lock = threading.Lock()
        self._token: tuple[str, float] = ("", 0.0)

    def put(self, key: str, path: Path) -> None:
        size = path.stat().st_size
        if size <= PART:
            return self._upload(key, path, 0, size)
        step = max(PART, -(-size // PARTS))
        starts = list(range(0, size, step))
        parts = [f"{key}{MARK}{start:016d}" for start in starts]
        with ThreadPoolExecutor(CONNECTIONS, "accel-parts") as pool:
            for each in [
                pool.submit(self._upload, part, path, start, min(step, size - start))
                for part, start in zip(parts, starts)
            ]:
                each.result()
            body = {"sourceObjects": [{"name": part} for part in parts]}
            made = json.loads(self._call("POST", f"{self._object(key)}/compose", json.dumps(body).encode()))
            if int(made["size"]) != size:
                raise StoreError(f"gs://{self._bucket}/{key}: has {made['size']} bytes of {size}")
            for each in [pool.submit(self.delete, part) for part in parts]:
                each.result()
        return None

    def put_bytes(self, key: str, data: bytes) -> None:
        """Write an object in one request, so that it is complete or absent."""
        self._call("POST", self._uploads(key), data, "application/octet-stream")

    def get(self, key: str, path: Path) -> None:
        """Raise FileNotFoundError if the object is missing."""
        self._call("GET", f"{self._object(key)}?alt=media", into=path)

    def get_bytes(self, key: str) -> bytes | None:
        try:
            return self._call("GET", f"{self._object(key)}?alt=media")
        except FileNotFoundError:
            return None

    def delete(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._call("DELETE", self._object(key))

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return bytes by key."""
        found: dict[str, int] = {}
        query = {"prefix": prefix, "fields": "items(name,size),nextPageToken"}
        while True:
            told = json.loads(self._call("GET", f"{_root()}storage/v1/b/{_part(self._bucket)}/o?{urlencode(query)}"))
            found.update({item["name"]: int(item["size"]) for item in told.get("items", ())})
            if not told.get("nextPageToken"):
                return found
            query["pageToken"] = told["nextPageToken"]

    def _upload(self, key: str, path: Path, start: int, size: int) -> None:
        made = json.loads(self._call("POST", self._uploads(key), _Slice(path, start, size), "application/octet-stream"))
        if int(made["size"]) != size:
            raise StoreError(f"gs://{self._bucket}/{key}: has {made['size']} bytes of {size}")

    def _uploads(self, key: str) -> str:
        query = urlencode({"uploadType": "media", "name": key})
        return f"{_root()}upload/storage/v1/b/{_part(self._bucket)}/o?{query}"

    def _object(self, key: str) -> str:
        return f"{_root()}storage/v1/b/{_part(self._bucket)}/o/{_part(key)}"

    def _call(
        self,
        method: str,
        url: str,
        data: bytes | _Slice | None = None,
        kind: str = "application/json",
        into: Path | None = None,
    ) -> bytes:
        """Return the body of the answer. Retry failures that may pass. Raise StoreError, FileNotFoundError."""
        status, said = 0, ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(random.uniform(0.25, 0.5) * 2**attempt)  # noqa: S311
            headers = {"Authorization": f"Bearer {self._bearer(fresh=status == 401)}", "Content-Type": kind}
            if data is not None:
                headers["Content-Length"] = str(data.size if isinstance(data, _Slice) else len(data))
            body = iter(data) if isinstance(data, _Slice) else data
            request = urllib.request.Request(url, data=body, headers=headers, method=method)  # noqa: S310
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
                    return _saved(answer, into) if into else answer.read()
            except urllib.error.HTTPError as error:
                status, said = error.code, f"HTTP {error.code}: {_said(error)}"
            except (OSError, ValueError) as error:
                status, said = 0, str(error) or type(error).__name__
            if status not in PASSING:
                break
        text = f"{method} {url.partition('?')[0]}: {said}"
        raise FileNotFoundError(text) if status == 404 else StoreError(text)

    def _bearer(self, fresh: bool) -> str:
        told = os.environ.get(TOKEN)
        if told:
            return told
        with self._lock:
            if fresh or time.monotonic() > self._token[1]:
                text, lasts_s = _token()
                self._token = text, time.monotonic() + lasts_s - 60
            return self._token[0]


class _Slice:
    """Bytes of a file, read again for each attempt."""

    def __init__(self, path: Path, start: int, size: int) -> None:
        self.path, self.start, self.size = path, start, size

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            file.seek(self.start)
            left = self.size
            while left:
                block = file.read(min(BLOCK, left))
                if not block:
                    raise StoreError(f"{self.path}: has become shorter")
                left -= len(block)
                yield block


def _token() -> tuple[str, float]:
    """Return a token and its lifetime in seconds. Raise StoreError if there is none."""
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        request = urllib.request.Request(url, headers={"Metadata-Flavor": "Google"})
        with opener.open(request, timeout=5) as answer:
            told = json.loads(answer.read())
        return str(told["access_token"]), float(told["expires_in"])
    except (OSError, ValueError, KeyError) as error:
        found = _elsewhere()
        if found is None:
            hint = "off Google's machines install google-auth"
            raise StoreError(f"no token for Cloud Storage: the metadata server says {error}; {hint}") from None
        return found


def _elsewhere() -> tuple[str, float] | None:
    import importlib

    try:
        auth: Any = importlib.import_module("google.auth")
        transport: Any = importlib.import_module("google.auth.transport.requests")
    except ImportError:
        return None
    try:
        found, _ = auth.default(scopes=["https://www.googleapis.com/auth/devstorage.read_write"])
        found.refresh(transport.Request())
    except auth.exceptions.GoogleAuthError as error:
        raise StoreError(f"no token for Cloud Storage: {error.args[0] if error.args else error}") from None
    return str(found.token), 600.0


def _saved(answer: Any, into: Path) -> bytes:
    with into.open("wb") as file:
        while True:
            block = answer.read(BLOCK)
            if not block:
                return b""
            file.write(block)


def _said(error: urllib.error.HTTPError) -> str:
    try:
        told = json.loads(error.read(4096))["error"]["message"]
    except (OSError, ValueError, KeyError, TypeError):
        told = error.reason
    return " ".join(str(told).split())[:300]


def _root() -> str:
    return os.environ.get("ACCEL_STORAGE_ROOT") or ROOT


def _part(text: str) -> str:
    return quote(text, safe="")
