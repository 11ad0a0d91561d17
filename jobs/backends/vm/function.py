"""Where a stack's scheduled function begins, on Cloud Run: one look at one bucket a call.

Its archive has this module, what it imports, and `requests`; nothing else of this project.
"""

import os
from typing import Any

from accel.clouds.google.api import Google
from accel.clouds.google.rest import GIVEN

from .reconcile import Reconciler

BUCKET = "BUCKET"
"""Variable: the bucket of the records."""
PATIENCE_S = 120.0
"""How long a call goes on with what it began; the next one goes on after that."""
METADATA = "metadata.google.internal"

_reconcilers: dict[str, Reconciler] = {}


def handler(request: Any) -> tuple[str, int]:
    """What failed, with status 500, so that the log and the scheduler show it."""
    bucket = os.environ[BUCKET]
    os.environ[GIVEN] = _token()
    reconciler = _reconcilers.setdefault(bucket, Reconciler(bucket))
    failures = reconciler.reconcile(Google(), lambda text: print(f"accel: {text}"), PATIENCE_S)  # noqa: T201
    for each in failures:
        print(f"accel: failed: {each}")  # noqa: T201
    return "; ".join(failures) or "ok", 500 if failures else 200


def _token() -> str:
    """Of the function's own account. Source:
    https://docs.cloud.google.com/run/docs/securing/service-identity#access_tokens"""
    import requests

    host = os.environ.get("GCE_METADATA_HOST") or METADATA
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    answer = requests.get(url, headers={"Metadata-Flavor": "Google"}, timeout=10)
    answer.raise_for_status()
    return str(answer.json()["access_token"])
