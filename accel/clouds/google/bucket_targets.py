"""Targets that a stack publishes as objects of a bucket: <folder>/<target>.json. Its jobs may not write there."""

import json
from collections.abc import Iterator
from typing import Any

from accel.contract import buckets

from ...diagnostics.errors import BadInput
from .api import Google, object_path

_NAMES = "items(name),nextPageToken"


def published_targets(google: Google, bucket: str, folder: str = buckets.TARGETS) -> Iterator[tuple[str, Any]]:
    """Yield name and JSON value. Raise BadInput for invalid JSON, NotFound if the bucket does not exist."""
    for item in google.pages("storage", f"b/{bucket}/o", "items", prefix=f"{folder}/", fields=_NAMES):
        name = str(item.get("name"))
        if not name.endswith(".json"):
            continue
        data, _ = google.read("storage", object_path(bucket, name))
        try:
            yield name.removeprefix(f"{folder}/").removesuffix(".json"), json.loads(data)
        except ValueError:
            raise BadInput(f"gs://{bucket}/{name}: is not JSON") from None
