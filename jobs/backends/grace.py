"""The grace period between SIGTERM and SIGKILL, as a job learns it."""

from ..runtime import platforms

_NAMES = {"gke": "kubernetes"}
"""Kinds of targets that have another name in the runtime."""


def environment(kind: str, seconds: float) -> dict[str, str]:
    """Return ACCEL_GRACE_S if the runtime assumes another figure for this kind of target."""
    rows = {row.name: row for row in platforms.PLATFORMS}
    assumed = rows.get(_NAMES.get(kind, kind), platforms.ELSEWHERE).grace_s
    return {} if assumed == seconds else {platforms.GRACE: f"{seconds:g}"}
