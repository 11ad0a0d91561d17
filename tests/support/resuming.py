"""A program that trains, saves when it is asked to stop, and goes on from there: FOLDER STEPS HOLD STEP_S.

Its first attempt comes to step HOLD and stays there until its machine is taken away, so that no test depends on how
fast the machine is. What it learns and what its GPU does are made up; all else is what a job uses of jobs/runtime.
"""

import math
import random
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
if __name__ == "__main__":
    sys.path[0] = str(HERE.parents[2])  # in place of this folder, whose modules have names of packages

from jobs import runtime  # noqa: E402
from jobs.runtime import reporting as told  # noqa: E402
from jobs.runtime.gpus import State  # noqa: E402
from jobs.runtime.gpus_stats import Stats  # noqa: E402
from jobs.runtime.nodes import addresses  # noqa: E402


def command(folder: Path, *, steps: int = 24, hold: int = 12, step_s: float = 0.05) -> list[str]:
    """For a job file. `folder`: where its checkpoints are."""
    return ["python", str(HERE), str(folder), str(steps), str(hold), str(step_s)]


class MadeUp:
    """A GPU."""

    least_s = 0.1

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._began = time.monotonic()

    def read(self) -> list[dict[str, Any]]:
        warm = 1 - math.exp(-3 * (time.monotonic() - self._began))
        use, memory = 94 * warm + self._random.uniform(-4, 4), 17_400 * warm + 1_100
        told = {"use": round(max(0.0, use), 1), "memory_use": round(max(0.0, use / 2), 1)}
        return [{"index": 0, **told, "memory_mib": int(memory), "memory_total_mib": 23_034}]

    def xids(self) -> dict[int, list[int]]:
        return {}

    def states(self) -> list[State]:
        return []

    def driver(self) -> str:
        return ""

    def close(self) -> None:
        pass


def main(folder: str, steps: int, hold: int, step_s: float) -> None:
    runtime.watch()
    told.EVERY_S = 0.0  # every step is looked at
    nodes = runtime.rendezvous()
    if nodes.nodes > 1:
        addresses(nodes.rank, nodes.nodes, nodes.address, nodes.port + 1, 60)
        runtime.event("health", f"node {nodes.rank} met {nodes.nodes - 1} other")
    checkpoints = runtime.Checkpoints(folder, keep=2)
    found = checkpoints.resume()
    task = runtime.task().index
    step, chance = (found.step if found else 0), random.Random(nodes.rank + task)
    step_s *= 1 + task / 8

    def write(into: Any) -> None:
        with into.open("state") as file:
            file.write(str(step).encode())

    with Stats(every_s=max(step_s, 0.1), open_source=lambda: MadeUp(nodes.rank + task)):
        while step < steps and not runtime.should_stop():
            time.sleep(step_s)
            if found or step < hold:
                step += 1
                loss = 2.3 * math.exp(-3 * step / steps) + chance.uniform(0, 0.12)
                runtime.report(step=step, steps=steps, loss=loss, accuracy=1 - loss / 2.6)
                if step % (hold // 2) == 0:
                    checkpoints.save(step, write)
    if runtime.should_stop() and step < steps:
        checkpoints.save(step, write)
    runtime.finish(done=step >= steps)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
