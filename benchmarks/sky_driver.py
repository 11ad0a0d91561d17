"""Asks SkyPilot's optimizer; runs in the environment where that is installed, and imports nothing of this project.
`sky_driver.py prepare` writes which clouds are enabled, which SkyPilot would else ask the clouds. `sky_driver.py
QUESTIONS ANSWERS ROUNDS` answers all questions so many times, and writes what it found and how long each took."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

CLOUDS = ["aws", "gcp"]


def prepare() -> None:
    (Path.home() / ".sky" / "config.yaml").write_text(json.dumps({"allowed_clouds": CLOUDS}))
    state: Any = import_module("sky.global_user_state")
    clouds: Any = import_module("sky.clouds")
    state.set_enabled_clouds(CLOUDS, clouds.CloudCapability.COMPUTE, "default")
    state.set_allowed_clouds(CLOUDS, "default")


def main(questions: Path, answers: Path, times: int) -> None:
    sky: Any = import_module("sky")
    asked: list[dict[str, Any]] = json.loads(questions.read_text())
    rounds: list[list[float]] = []
    found: list[dict[str, Any]] = []
    for _ in range(times):
        seconds: list[float] = []
        found = []
        for each in asked:
            started = time.perf_counter()
            found.append(_answer(sky, each))
            seconds.append(time.perf_counter() - started)
        rounds.append(seconds)
    answers.write_text(json.dumps({"answers": found, "rounds_s": rounds}))


def _answer(sky: Any, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        with sky.Dag() as dag:
            task = sky.Task()
            task.set_resources(sky.Resources(**asked))
        sky.Optimizer.optimize(dag, quiet=True)
    except (sky.exceptions.ResourcesUnavailableError, ValueError) as error:
        return {"why_none": str(error).strip().splitlines()[0]}
    best = task.best_resources
    return {
        "usd": best.get_cost(3600),
        "cloud": str(best.cloud).lower(),
        "region": best.region,
        "machine": best.instance_type,
    }


if __name__ == "__main__":
    if sys.argv[1:] == ["prepare"]:
        prepare()
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
