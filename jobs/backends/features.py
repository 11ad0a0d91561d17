"""Abilities of each backend, as plain data. tests/jobs/backends/test_features.py checks them against the classes."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Features:
    """Abilities of one kind of target besides render, submit, status and cancel."""

    logs: bool = True
    listing: bool = True
    many: bool = True
    concurrent: bool = False
    """Submits from several threads at once."""
    resubmit: bool = True
    resubmit_tasks: bool = False
    tasks: bool = False
    progress_lines: bool = False
    attempts: bool = True
    exec: bool = False
    quota: bool = False
    """A check of the account's quotas before submission."""
    free_gpus: bool = False
    explain: bool = True
    reconcile: bool = False
    """Jobs that a client advances with `tend`."""
    feasibility: bool = False
    """A check of the machine itself before submission."""
    arrays: bool = False
    nodes: bool = True
    spot_prefer: bool = False
    """`spot: prefer`, which moves a job to on demand in time for its deadline."""


FEATURES: Mapping[str, Features] = {
    "aws-batch": Features(
        concurrent=True, resubmit_tasks=True, tasks=True, progress_lines=True, quota=True,
        free_gpus=True, arrays=True, spot_prefer=True,
    ),
    "google-batch": Features(
        concurrent=True, resubmit_tasks=True, tasks=True, quota=True, arrays=True, spot_prefer=True,
    ),
    "vertex": Features(concurrent=True, attempts=False, quota=True),
    "gke": Features(
        concurrent=True, resubmit_tasks=True, tasks=True, exec=True, free_gpus=True, arrays=True,
        spot_prefer=True,
    ),
    "tpu-vm": Features(exec=True, quota=True, reconcile=True),
    "gce": Features(exec=True, quota=True, reconcile=True),
    "local": Features(
        many=False, resubmit_tasks=True, tasks=True, feasibility=True, arrays=True, nodes=False,
    ),
}  # fmt: skip
"""Keyed by kind of target, in the order of docs/choosing.md."""
