"""The common part of both clouds' budgets: the shares of the amount at which they notify, or stop the stack."""

from typing import Literal

from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules import budgets as rules

from .base import Spec


class Thresholds(Spec):
    """Shares of the amount at which the recipients are notified."""

    actual: list[float] = Field(
        default=[0.5, 0.9, 1.0], description="Shares of the amount at which to notify, by actual spending: 0.9 is 90 %"
    )
    forecast: list[float] = Field(
        default=[1.0],
        description="Shares of the amount at which to notify, by the spending that the cloud forecasts for the "
        "whole period",
    )

    def check(self) -> list[Finding]:
        return rules.thresholds("actual", self.actual) + rules.thresholds("forecast", self.forecast)


class StopRunning(Spec):
    """A stop of running work as well, after a grace period in which it goes on."""

    after_min: int = Field(
        default=60, ge=0, le=10_080, description="Grace period in minutes after the stop; then SIGTERM, SIGKILL"
    )


class Stop(Spec):
    """The stack stops itself: no new submissions; queues, pools and environments off."""

    at: float = Field(default=1.0, description="Share of the amount at which the stack stops itself")
    basis: Literal["actual", "forecast"] = "actual"
    running: StopRunning | None = Field(
        default=None,
        description="Stop running work too, after a grace period. Without it, what runs continues to its end",
    )

    def check(self) -> list[Finding]:
        return rules.threshold("at", self.at)

    @property
    def running_after_s(self) -> int | None:
        return self.running.after_min * 60 if self.running else None
