"""What a test sets of Google Batch: POST /sandbox-api/batch."""

from dataclasses import dataclass
from typing import Any

from ..world import World


@dataclass
class Settings:
    """`task_lag_s`: tasks are not found until so long after their job was created, as
    https://github.com/nextflow-io/nextflow/issues/5422 saw; `state_lag_s`: a job's status is as old as this at most;
    `delete_s`: for how long a job is being deleted at least; `agent`: whether the agents on VMs report; `seed`: of how
    late log entries can be read, within World.log_lag_s."""

    task_lag_s: float = 0
    state_lag_s: float = 0
    delete_s: float = 0
    agent: bool = True
    seed: int = 0


def settings(world: World) -> Settings:
    return world.live.setdefault("batch", Settings())


def change(world: World, asked: dict[str, Any]) -> Settings:
    """Raises TypeError for one that is unknown."""
    world.live["batch"] = Settings(**{**vars(settings(world)), **asked})
    return settings(world)
