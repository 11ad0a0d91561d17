"""A target of Google Batch, and jobs for it."""

from typing import Any

from accel.contract.google_jobs import GoogleBatchTarget
from jobs.backends.base import Request
from jobs.backends.google_batch.request import render
from tests.jobs.backends.small_request import small_request

PROJECT = "accel-sandbox"
REGION = "us-central1"
IMAGE = "us-docker.pkg.dev/acme/ml/train:1.4"


def make_target(**changes: Any) -> GoogleBatchTarget:
    """One region, all of its zones, no address on the internet."""
    values: dict[str, Any] = {
        "project": PROJECT,
        "region": REGION,
        "service_account": f"batch@{PROJECT}.iam.gserviceaccount.com",
        "bucket": "acme-jobs",
        "labels": {"team": "vision"},
        "network": f"projects/{PROJECT}/global/networks/ml",
        "subnetwork": f"projects/{PROJECT}/regions/{REGION}/subnetworks/ml",
        "tags": ["batch"],
    }
    return GoogleBatchTarget(**{**values, **changes})


def make_request(target: GoogleBatchTarget | None = None, text: str = "golden", **fields: Any) -> Request:
    """The request of a small job under the key of a text."""
    return small_request(render, "batch", target or make_target(), text, **{"image": IMAGE, **fields})
