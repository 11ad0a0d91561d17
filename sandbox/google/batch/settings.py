"""Settings of Google Batch that a test changes: POST /sandbox-api/batch."""

from dataclasses import dataclass
from typing import Any

from ..world import World


@dataclass
class Settings:
    """Settings of a test. `task_lag_s`: how long tasks are not found after their job was created, as
    https://github.com/nextflow-io/nextflow/issues/5422 saw; `state_lag_s`: maximum age of a job's status; `delete_s`:
    minimum time that a deletion takes; `agent`: whether the agents on VMs report; `seed`: of the delays of log entries,
    within World.log_lag_s."""

    task_lag_s: float = 0
    state_lag_s: float = 0
    delete_s: float = 0
    agent: bool = True
    seed: int = 0


def settings(world: World) -> Settings:
    return world.live.setdefault("batch", Settings())


def change(world: World, asked: dict[str, Any]) -> Settings:
    """Raise TypeError for an unknown setting."""
    world.live["batch"] = Settings(**{**vars(settings(world)), **asked})
    return settings(world)
