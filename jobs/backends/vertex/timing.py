"""How long things take with Vertex AI, and how often a job may be submitted."""

from dataclasses import dataclass

from accel.clouds import timeouts
from accel.clouds.rate_limit import Rate

THREADS = 4
"""That submit at once: with a submission a second, more would only wait."""
SUBMITS_PER_MINUTE = 60 - THREADS
"""Vertex takes 60 submissions a minute, of everybody in a project and region together. However late the calls of the
threads come, no minute has more. Source: https://docs.cloud.google.com/vertex-ai/docs/quotas"""


@dataclass(frozen=True)
class Timing(timeouts.Timing):
    """Seconds. A claim's lease has to outlive a call (connect + read), the quiet period and another call."""

    lease_s: float = 120
    quiet_s: float = 15
    """Vertex says nothing of how soon a list has a new job. One not listed for this long was not made."""
    submits: int = SUBMITS_PER_MINUTE
    """The most that this process makes in `window_s`."""
    window_s: float = 60

    @property
    def call_s(self) -> float:
        """The longest that one call without retries can take."""
        return self.connect_s + self.read_s

    def rate(self, submits_per_s: int | None = None) -> Rate:
        """Of submits; where nothing is said, a little less than Vertex takes."""
        return Rate(submits_per_s) if submits_per_s else Rate(self.submits, within_s=self.window_s)
