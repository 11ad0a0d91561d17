"""Client for the objects of an Amazon S3 bucket, with the boto3 of the image."""

from __future__ import annotations

import errno
import importlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ATTEMPTS = 6


class StoreError(OSError):
    """A bucket refused or did not answer; the text names the object. `errno` is EIO if the object is damaged."""


class S3:
    """A bucket. boto3 determines region, endpoint and credentials. Several threads can share it."""

    def __init__(self, bucket: str) -> None:
        try:
            boto3 = importlib.import_module("boto3")
        except ImportError:
            raise ImportError(f"s3://{bucket}: needs boto3; install it in the image") from None
        config = importlib.import_module("botocore.config").Config
        errors = importlib.import_module("botocore.exceptions")
        self._refused, self._corrupt = errors.ClientError, errors.FlexibleChecksumError
        transfer = importlib.import_module("boto3.exceptions").Boto3Error
        self._errors = (errors.ClientError, errors.BotoCoreError, transfer)
        self._bucket = bucket
        retries = {"mode": "standard", "total_max_attempts": ATTEMPTS}
        self._client: Any = boto3.client("s3", config=config(retries=retries, max_pool_connections=50))

    def put(self, key: str, path: Path) -> None:
        """Upload a file, a large one in parallel parts."""
        with self._asking(key):
            self._client.upload_file(str(path), self._bucket, key)

    def put_bytes(self, key: str, data: bytes) -> None:
        """Write an object in one request, so that it is complete or absent."""
        with self._asking(key):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=data)

    def get(self, key: str, path: Path) -> None:
        """Raise FileNotFoundError if the object is missing."""
        with self._asking(key):
            self._client.download_file(self._bucket, key, str(path))

    def get_bytes(self, key: str) -> bytes | None:
        try:
            with self._asking(key):
                return self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except FileNotFoundError:
            return None

    def delete(self, key: str) -> None:
        """Delete an object, unless it is missing."""
        with self._asking(key):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return bytes by key."""
        found: dict[str, int] = {}
        with self._asking(prefix):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix):
                found.update({each["Key"]: each["Size"] for each in page.get("Contents", ())})
        return found

    @contextmanager
    def _asking(self, key: str) -> Generator[None, None, None]:
        try:
            yield
        except self._errors as error:
            # NoSuchKey of a GET; a HEAD, with which a download begins, has no body and so no more than its status.
            code = error.response["Error"]["Code"] if isinstance(error, self._refused) else ""
            text = f"s3://{self._bucket}/{key}: {error}"
            if isinstance(error, self._corrupt):  # its bytes are not those that S3 has a checksum of
                raise StoreError(errno.EIO, text) from None
            kind = FileNotFoundError if code in ("NoSuchKey", "404") else StoreError
            raise kind(text) from None
