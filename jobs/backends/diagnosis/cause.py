"""The type of a cause, and the texts that several causes share."""

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
"""Names by the folders of the backends."""


@dataclass(frozen=True)
class Cause:
    """Cause, its meaning, and the pages that describe it."""

    id: str
    title: str
    sources: Mapping[str, str]
    """Sources by platform, for those that can name the cause."""
    reason: str = ""
    """Reason for rows of words that give none of their own. The same holds for `next_step`."""
    next_step: str = ""


def define(cause: str, title: str, reason: str = "", next_step: str = "", everywhere: str = "", **on: str) -> Cause:
    """Take `everywhere` as the source on each platform, `on` as those of single platforms."""
    sources = dict.fromkeys(PLATFORMS, everywhere) if everywhere else dict[str, str]()
    return Cause(cause, title, {**sources, **on}, reason, next_step)


RETRY = "`accel-jobs retry REF` runs it again"
THEN_RETRY = "then `accel-jobs retry REF`"
DEPLOY = "deploy the stack of the target again, and submit to the target of now"
