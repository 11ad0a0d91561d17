"""How long a log is followed after the end of what writes it, the same on every platform whose lines may arrive after
that end: AWS Batch, Google Batch, Vertex AI, and VMs. Pods and local jobs have no late lines."""

import time
from datetime import UTC, datetime

LONG_OVER_S = 60
"""Time after an end at which a log is whole: far more than lines are late, and than most clocks are apart."""


class WriterEnd:
    """The end of a job or of an attempt, from when its reader first saw it. Its log is whole once the platform's
    `wait_s` has passed since, or, where the platform's own time of the end is known, LONG_OVER_S since that time: the
    log of what ended long ago is read once, and two clocks that differ lose no lines."""

    def __init__(self, stopped: datetime | None, wait_s: float) -> None:
        now = time.monotonic()
        ago_s = (datetime.now(UTC) - stopped).total_seconds() if stopped else 0
        self._whole_from = min(now + wait_s, now - ago_s + LONG_OVER_S)

    def is_whole(self, begun: float) -> bool:
        """Return whether a read that began at this time of the monotonic clock returned all lines up to the last."""
        return begun >= self._whole_from
