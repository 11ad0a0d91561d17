"""Where a job is told that its machine is being taken away, and how many seconds it then has."""

from __future__ import annotations

import os
from typing import NamedTuple


class Platform(NamedTuple):
    """A row: how a platform is recognised, what it warns by, and the seconds that each way of warning leaves."""

    name: str
    variable: str
    """Set in every job there; empty where the machine's own data tell."""
    maker: str
    """Of the machine, as its firmware has it; empty where the variable tells."""
    notice: str
    """"ec2" or "gce": whose metadata server is asked; empty: a signal is all there is."""
    notice_s: float | None
    """Seconds between the notice and the end of the machine."""
    grace_s: float | None
    """Seconds between SIGTERM and SIGKILL, where ACCEL_GRACE_S does not tell."""
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
"""In the order in which they are looked for."""

ELSEWHERE = Platform("other", "", "", "", None, None, "")
GRACE = "ACCEL_GRACE_S"
"""Seconds between SIGTERM and SIGKILL, from whoever started the job and knows."""
MACHINE = "/sys/class/dmi/id/"


def here() -> Platform:
    """The platform of this process, by its variables and the machine's firmware: nothing is asked over the network."""
    for row in PLATFORMS:
        if row.variable and os.environ.get(row.variable):
            return row
    makers = {_firmware("sys_vendor"), _firmware("product_name")}
    return next((row for row in PLATFORMS if row.maker in makers and row.maker), ELSEWHERE)


def grace_s(platform: Platform) -> float | None:
    """Seconds after SIGTERM. Raises ValueError for an ACCEL_GRACE_S that is no number of seconds."""
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
