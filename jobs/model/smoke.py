"""`submit --smoke`: a job cut down to a short run of one task, which shows whether it starts and what it prints. What
decides whether it can start stays the same: image, command, machine type, GPUs, mounts, secrets, Spot or not."""

from typing import TYPE_CHECKING, Any

from accel.contract.variables import SMOKE
from accel.diagnostics.errors import BadInput

from . import sweep_tasks

if TYPE_CHECKING:
    from .blocks import AwsBatch
    from .job import Job

TIMEOUT_S = 600
TIMEOUT_MIN_S = 60
"""AWS Batch takes no less, and no machine starts a framework in less."""
NAME_MAX = 100
_SUFFIX = "-smoke"


def of(job: "Job", timeout_s: int = TIMEOUT_S) -> "Job":
    """Return a job's first task on one node, tried once, with ACCEL_SMOKE=1 and a name of its own. It ends after
    `timeout_s`, or after the job's own timeout_s where that is shorter. A TPU slice stays whole. A job of `spot:
    prefer` runs on Spot alone. Raise BadInput where the job cannot be cut down."""
    one = sweep_tasks.first(job)
    changes = {
        "name": f"{job.name[: NAME_MAX - len(_SUFFIX)]}{_SUFFIX}",
        "env": one.env | {SMOKE: "1"},
        "nodes": 1,
        "tasks": 1,
        "parallelism": None,
        "retries": 0,
        "lost_retries": 0,
        "timeout_s": min(timeout_s, job.timeout_s or timeout_s),
        "spot": True if job.spot == "prefer" else job.spot,
        "deadline": None,
        "work_s": None,
        "changeover_s": None,
    }
    return one.model_copy(update={**changes, **_blocks(job)})


def summary(job: "Job", run: "Job") -> str:
    pools = [name for name in _POOLS if job.vertex and getattr(job.vertex, name)]
    cut = [
        *([f"1 of {job.tasks:,} tasks"] if job.tasks > 1 else []),
        *([f"1 of {job.nodes} nodes"] if job.nodes > 1 else []),
        *([f"1 of {job.tpu_vm.slices} slices"] if job.tpu_vm and job.tpu_vm.slices > 1 else []),
        *([f"without its {' and '.join(pools)}"] if pools else []),
    ]
    return f"{run.name}: a smoke run of {job.name}: {', '.join([*cut, f'{run.timeout_s} s at most', 'no retries'])}"


_POOLS = ("workers", "parameter_servers", "reduction_servers", "evaluators")


def _blocks(job: "Job") -> dict[str, Any]:
    """Return the blocks without fields for several tasks, for retries, or for a longer time."""
    without: dict[str, dict[str, Any]] = {
        "tpu_vm": {"slices": 1},
        "gce": {"max_run": None},
        "google_batch": {"exit_codes": []},
        "vertex": {"restart": None} | dict.fromkeys(_POOLS),
    }
    found = {name: getattr(job, name) for name in without}
    made = {name: block.model_copy(update=without[name]) for name, block in found.items() if block}
    return made | ({"aws_batch": _batch(job.aws_batch)} if job.aws_batch else {})


def _batch(block: "AwsBatch") -> "AwsBatch":
    for index, each in enumerate(block.depends_on):
        if each.type == "N_TO_N":
            raise BadInput(
                f"aws_batch.depends_on.{index}: N_TO_N is between tasks of two arrays, and a smoke run is one task",
                "--set aws_batch.depends_on=[] lets it wait for none",
            )
    return block.model_copy(update={"depends_on": [each for each in block.depends_on if each.type is None]})
