"""A target of Google Batch, and jobs for it."""

from typing import Any

from accel.contract.google_jobs import GoogleBatchTarget
from jobs.backends.base import Request
from jobs.backends.google_batch.request import render
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key

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
    values: dict[str, Any] = {"name": "digits", "image": IMAGE, "command": ["python3", "train.py"], **fields}
    job = Job(**values)
    key = submission_key(job.name, text)
    return render(job, platform_name(job.name, key), key, "batch", target or make_target())
