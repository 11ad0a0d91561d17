"""Maintenance windows of a GKE cluster, and times without upgrades."""

from collections.abc import Sequence
from datetime import datetime

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

WINDOW = rule("gcp.maintenance.window")
WINDOW_SCARCE = rule("gcp.maintenance.window-scarce")
EXCLUSION = rule("gcp.maintenance.exclusion")
EXCLUSION_LONG = rule("gcp.maintenance.exclusion-long")
EXCLUSION_COUNT = rule("gcp.maintenance.exclusion-count")

_WINDOW_LEAST_H = 4
_WINDOW_32_DAYS_H = 48
_NO_UPGRADES_DAYS = 90


def window(days: Sequence[str], hours: int) -> list[Finding]:
    if not _WINDOW_LEAST_H <= hours <= 24:
        return [WINDOW.finding("hours", f"must be 4 to 24, is {hours}", "write 4 or more")]
    # Any 32 days contain each day of the week at least four times.
    open_h = 4 * len(set(days)) * hours
    if open_h >= _WINDOW_32_DAYS_H:
        return []
    least = -(-_WINDOW_32_DAYS_H // (4 * len(set(days))))
    fix = f"write {least} hours or more" if least <= 24 else "name more days"
    message = f"is {hours} on {len(set(days))} day{'s' * (len(set(days)) > 1)} a week, {open_h} hours in 32 days"
    return [WINDOW_SCARCE.finding("hours", message, fix)]


def exclusion(scope: str, start: datetime, end: datetime | None, field: str) -> list[Finding]:
    """Check a time without upgrades. `end` None: until the version's support ends."""
    if end is None:
        if scope != "NO_UPGRADES":
            return []
        message = "is absent, and NO_UPGRADES has to end by itself"
        return [EXCLUSION.finding(f"{field}.end", message, "name an end, or write NO_MINOR_OR_NODE_UPGRADES")]
    if end <= start:
        message = f"is {end.isoformat()}, not after start ({start.isoformat()})"
        return [EXCLUSION.finding(f"{field}.end", message, "write a later time")]
    days = (end - start).total_seconds() / 86400
    if scope == "NO_UPGRADES" and days > _NO_UPGRADES_DAYS:
        message = f"is {days:.0f} days after start, and NO_UPGRADES lasts {_NO_UPGRADES_DAYS} at most"
        fix = "end it sooner, or write NO_MINOR_OR_NODE_UPGRADES, which may last as long as the version's support"
        return [EXCLUSION_LONG.finding(f"{field}.end", message, fix)]
    return []


def exclusions(scopes: Sequence[str], field: str = "exclusions") -> list[Finding]:
    whole = sum(scope == "NO_UPGRADES" for scope in scopes)
    if len(scopes) > 20:
        return [EXCLUSION_COUNT.finding(field, f"are {len(scopes)}, more than 20", "drop those that are over")]
    if whole > 3:
        message = f"has {whole} of NO_UPGRADES, more than 3"
        return [EXCLUSION_COUNT.finding(field, message, "drop those that are over, or narrow their scope")]
    return []
