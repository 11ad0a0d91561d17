"""What a job is told of the seconds between SIGTERM and SIGKILL."""

from ..runtime import platforms

_NAMES = {"gke": "kubernetes"}
"""Kinds of targets that the runtime calls otherwise."""


def environment(kind: str, seconds: float) -> dict[str, str]:
    """ACCEL_GRACE_S, where the runtime takes another figure for granted on a target of this kind."""
    rows = {row.name: row for row in platforms.PLATFORMS}
    assumed = rows.get(_NAMES.get(kind, kind), platforms.ELSEWHERE).grace_s
    return {} if assumed == seconds else {platforms.GRACE: f"{seconds:g}"}
