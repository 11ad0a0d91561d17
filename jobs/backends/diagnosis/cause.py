"""What a cause is, and what several of them say."""

from collections.abc import Mapping
from dataclasses import dataclass

PLATFORMS = {
    "aws_batch": "AWS Batch",
    "gke": "GKE",
    "google_batch": "Google Batch",
    "vertex": "Vertex AI",
    "vm": "TPU and GPU VMs",
    "local": "local",
}
"""By the folders of the backends."""


@dataclass(frozen=True)
class Cause:
    """One cause, what it means, and the pages that tell of it."""

    id: str
    title: str
    sources: Mapping[str, str]
    """By platform, for those that can name it."""
    reason: str = ""
    """What a row of words says that gives no reason of its own; so it is with the next."""
    next_step: str = ""


def define(cause: str, title: str, reason: str = "", next_step: str = "", everywhere: str = "", **on: str) -> Cause:
    """`everywhere`: the source on each platform; `on`: the sources of single platforms."""
    sources = dict.fromkeys(PLATFORMS, everywhere) if everywhere else dict[str, str]()
    return Cause(cause, title, {**sources, **on}, reason, next_step)


RETRY = "`accel-jobs retry REF` runs it again"
THEN_RETRY = "then `accel-jobs retry REF`"
DEPLOY = "deploy the stack of the target again, and submit to the target of now"
