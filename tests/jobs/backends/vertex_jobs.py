"""A target of Vertex AI, and requests for jobs on it."""

from datetime import date
from functools import partial
from typing import Any

from accel.contract.google_jobs import VertexTarget
from jobs.backends.base import Request
from jobs.backends.vertex.request import render
from tests.jobs.backends.small_request import small_request

PROJECT, REGION = "accel-sandbox", "us-central1"
IMAGE = "us-docker.pkg.dev/acme/ml/train:1.4"
PREBUILT = "us-docker.pkg.dev/vertex-ai/training"
RESERVED = f"projects/{PROJECT}/zones/us-central1-a/reservations/r"
TODAY = date(2026, 2, 1)
"""On which some of the prebuilt images are patched, others are to be had, others are gone."""


Fields = dict[str, Any]


def of(kind: str, count: int = 1, **more: Any) -> Fields:
    """A job's fields, with accelerators."""
    return {"accelerator": {"type": kind, "count": count}, **more}


def on(block: Fields, **more: Any) -> Fields:
    """A job's fields, with a block of Vertex AI's."""
    return {"vertex": block, **more}


def make_target(**changes: Any) -> VertexTarget:
    """One region, with an account and a bucket."""
    values: dict[str, Any] = {
        "project": PROJECT,
        "region": REGION,
        "service_account": f"runner@{PROJECT}.iam.gserviceaccount.com",
        "bucket": "acme-jobs",
        "labels": {"team": "vision"},
    }
    return VertexTarget(**{**values, **changes})


def make_request(target: VertexTarget | None = None, text: str = "golden", **fields: Any) -> Request:
    """The request of a small job under the key of a text."""
    today = partial(render, today=TODAY)
    return small_request(today, "trainer", target or make_target(), text, **{"image": IMAGE, **fields})
