"""Platforms of jobs: how each announces the end of a machine, and the seconds that the job then has."""

from __future__ import annotations

import os
from typing import NamedTuple


class Platform(NamedTuple):
    """A row: how a platform is recognised, what it warns by, and the seconds that each way of warning leaves."""

    name: str
    variable: str
    """Variable that every job there has; empty if the machine's own data identify the platform."""
    maker: str
    """Maker of the machine in its firmware; empty if the variable identifies the platform."""
    notice: str
    """"ec2" or "gce", the metadata server to ask; empty if a signal is the only warning."""
    notice_s: float | None
    """Seconds between the notice and the end of the machine."""
    grace_s: float | None
    """Seconds between SIGTERM and SIGKILL, unless ACCEL_GRACE_S says otherwise."""
    source: str


PLATFORMS = (
    # A job that is cancelled or ran out of time has 30 s; a reclaimed instance is gone two minutes after its notice.
    Platform(
        "aws-batch", "AWS_BATCH_JOB_ID", "", "ec2", 120.0, 30.0,
        "https://docs.aws.amazon.com/batch/latest/userguide/job_timeouts.html",
    ),
    Platform(
        "google-batch", "BATCH_JOB_UID", "", "gce", 30.0, 30.0,
        "https://docs.cloud.google.com/compute/docs/instances/spot#preemption-process",
    ),
    # No page says what a replica gets there: the seconds are those of Compute Engine's Spot VMs, not Vertex AI's word.
    Platform(
        "vertex", "CLUSTER_SPEC", "", "gce", 30.0, 30.0,
        "https://docs.cloud.google.com/compute/docs/instances/spot#preemption-process",
    ),
    # Of GKE's Spot nodes, whose kubelet turns the reclaim into SIGTERM; 30 is what pods have elsewhere. The metadata
    # server that pods see has no notices.
    Platform(
        "kubernetes", "KUBERNETES_SERVICE_HOST", "", "", None, 15.0,
        "https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms",
    ),
    Platform(
        "tpu-vm", "TPU_WORKER_HOSTNAMES", "", "gce", 30.0, 30.0,
        "https://docs.cloud.google.com/tpu/docs/preemptible",
    ),
    Platform(
        "ec2", "", "Amazon EC2", "ec2", 120.0, None,
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html",
    ),
    # The agent on a job's VM sends SIGTERM itself, and on a Spot VM keeps ten of the 30 seconds to tell how it ended.
    Platform(
        "gce", "", "Google Compute Engine", "gce", 30.0, 20.0,
        "https://docs.cloud.google.com/compute/docs/instances/spot#preemption-process",
    ),
)  # fmt: skip
"""Platforms in the order in which they are tried."""

ELSEWHERE = Platform("other", "", "", "", None, None, "")
GRACE = "ACCEL_GRACE_S"
"""Variable with the seconds between SIGTERM and SIGKILL, set by whoever started the job and knows."""
MACHINE = "/sys/class/dmi/id/"


def here() -> Platform:
    """Return the platform of this process by its variables and the machine's firmware, without the network."""
    for row in PLATFORMS:
        if row.variable and os.environ.get(row.variable):
            return row
    makers = {_firmware("sys_vendor"), _firmware("product_name")}
    return next((row for row in PLATFORMS if row.maker in makers and row.maker), ELSEWHERE)


def grace_s(platform: Platform) -> float | None:
    """Return the seconds from SIGTERM to SIGKILL; None: unknown. Raise ValueError for an unusable ACCEL_GRACE_S."""
    told = os.environ.get(GRACE)
    if told is None:
        return platform.grace_s
    try:
        seconds = float(told)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{GRACE}: must be a number of seconds, is {told!r}")
    return seconds


def _firmware(name: str) -> str:
    try:
        with open(MACHINE + name, encoding="utf-8") as file:  # noqa: PTH123, pathlib costs a third of the import
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""
