"""When Google may upgrade a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Literal

from pydantic import AwareDatetime, Field

from accel.diagnostics.findings import Finding
from accel.rules.gke import maintenance as rules

from ..base import Name, Spec
from ..sdk import gcp

Day = Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"]

_DAYS: tuple[Day, ...] = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_ANY_MONDAY = datetime(2024, 1, 1, tzinfo=UTC)
"""Where the weekly window begins to count; of a date Google keeps the time and the length only."""


class WindowSpec(Spec):
    """Hours of the week in which Google upgrades, in UTC."""

    days: list[Day] = Field(default=["SA", "SU"], min_length=1, description="that it opens on")
    start: str = Field(default="02:00", pattern=r"^([01]\d|2[0-3]):[0-5]\d$", description="HH:MM, UTC")
    hours: int = Field(default=6, description="how long it is open, 4 to 24")

    def findings(self) -> list[Finding]:
        return rules.window(self.days, self.hours)


class ExclusionSpec(Spec):
    """A time in which Google does not upgrade."""

    start: AwareDatetime = Field(description="with its zone, such as 2026-01-01T00:00:00Z")
    end: AwareDatetime | None = Field(default=None, description="null: when the support of the version ends")
    scope: Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"] = Field(
        default="NO_MINOR_OR_NODE_UPGRADES", description="the last one leaves nodes alone, and jobs with them"
    )


class MaintenanceSpec(Spec):
    """When upgrades may come. Google overrides both for grave faults and where a version's support ends."""

    window: WindowSpec | None = Field(default=WindowSpec(), description="null: at any time")
    exclusions: dict[Name, ExclusionSpec] = Field(default_factory=dict[str, ExclusionSpec])

    def findings(self) -> list[Finding]:
        each = [
            finding
            for name, one in self.exclusions.items()
            for finding in rules.exclusion(one.scope, one.start, one.end, f"exclusions.{name}")
        ]
        return each + rules.exclusions([one.scope for one in self.exclusions.values()])


def policy(spec: MaintenanceSpec) -> gcp.container.ClusterMaintenancePolicyArgs | None:
    """The policy as Google takes it; None where neither a window nor an exclusion is asked for."""
    if spec.window is None and not spec.exclusions:
        return None
    return gcp.container.ClusterMaintenancePolicyArgs(
        recurring_window=_window(spec.window) if spec.window else None,
        maintenance_exclusions=[_exclusion(name, spec.exclusions[name]) for name in sorted(spec.exclusions)] or None,
    )


def _zulu(moment: datetime) -> str:
    # Another spelling of the same time comes back in this one, and reads as a change for ever.
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _window(spec: WindowSpec) -> gcp.container.ClusterMaintenancePolicyRecurringWindowArgs:
    days = [day for day in _DAYS if day in spec.days]
    opens = time.fromisoformat(spec.start)
    first = _ANY_MONDAY + timedelta(days=_DAYS.index(days[0]), hours=opens.hour, minutes=opens.minute)
    return gcp.container.ClusterMaintenancePolicyRecurringWindowArgs(
        start_time=_zulu(first),
        end_time=_zulu(first + timedelta(hours=spec.hours)),
        recurrence=f"FREQ=WEEKLY;BYDAY={','.join(days)}",
    )


def _exclusion(name: str, spec: ExclusionSpec) -> gcp.container.ClusterMaintenancePolicyMaintenanceExclusionArgs:
    return gcp.container.ClusterMaintenancePolicyMaintenanceExclusionArgs(
        exclusion_name=name,
        start_time=_zulu(spec.start),
        end_time=_zulu(spec.end) if spec.end else None,
        exclusion_options=gcp.container.ClusterMaintenancePolicyMaintenanceExclusionExclusionOptionsArgs(
            scope=spec.scope, end_time_behavior=None if spec.end else "UNTIL_END_OF_SUPPORT"
        ),
    )
