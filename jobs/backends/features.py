"""Abilities of each backend, as plain data. tests/jobs/backends/test_features.py checks them against the classes."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Features:
    """Abilities of one kind of target besides render, submit, status and cancel."""

    logs: bool = True
    """Output stored by the platform."""
    listing: bool = True
    many: bool = True
    """Status of many jobs with few calls."""
    concurrent: bool = False
    """Submits from several threads at once."""
    resubmit: bool = True
    resubmit_tasks: bool = False
    """Repetition of some tasks of an array without the others."""
    tasks: bool = False
    """State of each task of an array."""
    progress_lines: bool = False
    """Progress lines of an array's tasks without all of their other lines."""
    attempts: bool = True
    """Attempts of a job, each with its times."""
    exec: bool = False
    """A command in a running job."""
    quota: bool = False
    """A check of the account's quotas before submission."""
    free_gpus: bool = False
    explain: bool = True
    reconcile: bool = False
    """Jobs that a client advances with `tend`."""
    feasibility: bool = False
    """A check of the machine itself before submission."""
    arrays: bool = False
    """Several tasks in one job."""
    nodes: bool = True
    """Several nodes in one job."""
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
