"""How the program's evaluation grows with the number of queues, without an engine. `python -m benchmarks.program N`
evaluates once, in a process of its own, so that the peak memory is its own."""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .measure import PYTHON, ROOT, Line, run

SIZES = (1, 10, 100)
RUNS = 3
SLOPE_LIMIT = 2.0


def measure(scratch: Path) -> Iterator[Line]:
    milliseconds: dict[int, float] = {}
    mebibytes: dict[int, float] = {}
    for size in SIZES:
        seen = [json.loads(run((PYTHON, "-m", "benchmarks.program", str(size)))) for _ in range(RUNS)]
        milliseconds[size] = statistics.median(one["ms"] for one in seen)
        mebibytes[size] = statistics.median(one["mib"] for one in seen)
        yield Line(f"evaluation, {size} queues, CPU time", milliseconds[size], "ms")
        yield Line(f"peak memory, {size} queues", mebibytes[size], "MiB")
    for name, values, unit in (("time", milliseconds, "ms"), ("memory", mebibytes, "MiB")):
        early, late = _slope(values, 1, 10), _slope(values, 10, 100)
        yield Line(f"{name} of each further queue, 10 to 100", late, unit, "that from 1 to 10", early)
        if name == "time":
            yield Line("growth of the time, the second slope over the first", late / early, "", limit=SLOPE_LIMIT)


def _slope(values: dict[int, float], low: int, high: int) -> float:
    # Memory comes in pages and arenas: a small step may show as none.
    return max((values[high] - values[low]) / (high - low), 0.001)


def _document(queues: int) -> dict[str, Any]:
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    document = config["accel:environment"]
    template = next(iter(document["aws"]["queues"].values()))
    document["aws"]["queues"] = {f"queue-{index:03}": dict(template) for index in range(queues)}
    return document


def evaluate(queues: int) -> None:
    from stacks.environment.config import load_environment
    from stacks.environment.deployment import deploy
    from stacks.environment.targets_file import EXPORT
    from tests.support import memory

    os.environ.pop(EXPORT, None)  # the targets of what was deployed stay where the commands read them
    # Once before: what is imported at the first use of a resource does not grow with the program.
    memory.run(lambda: deploy(load_environment(_document(1))))
    document = _document(queues)
    started = time.process_time()  # nothing is waited for, and another process's load is not the program's
    memory.run(lambda: deploy(load_environment(document)))
    elapsed = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 2**20 if sys.platform == "darwin" else 2**10
    print(json.dumps({"ms": 1000 * elapsed, "mib": peak / unit}))


if __name__ == "__main__":
    evaluate(int(sys.argv[1]))
