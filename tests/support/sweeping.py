"""A sweep whose program tells metrics, and fails for some parameters until a file is there."""

import json
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json, os, pathlib, time
rate, size = float(os.environ["RATE"]), int(os.environ["SIZE"])
print("task", os.environ["ACCEL_TASK_INDEX"], "of", os.environ["ACCEL_TASK_COUNT"])
for step in (1, 2):
    told = {"at": time.time(), "step": step, "steps": 2, "metrics": {"accuracy": rate * size * step, "loss": 1 / rate}}
    print("@accel " + json.dumps(told), flush=True)
raise SystemExit(3 if rate == 0.2 and not pathlib.Path(os.environ["MENDED"]).exists() else 0)
"""


def sweep(mended: Path, **fields: Any) -> dict[str, Any]:
    """The fields of a job of six tasks, of which 2 and 3 fail while `mended` is not there."""
    return {
        "name": "tuned",
        "image": "local/examples",
        "command": ["python", "-c", PROGRAM],
        "env": {"MENDED": str(mended)},
        "retries": 0,
        "sweep": {
            "grid": {"RATE": ["0.1", "0.2", "0.3"], "SIZE": ["1", "2"]},
            "objective": {"metric": "accuracy", "best": "max"},
        },
        **fields,
    }


def swept(results: str) -> list[dict[str, Any]]:
    """What `results` printed of all tasks, the best first."""
    found = json.loads(results)
    assert [each["task"] for each in found] == [5, 3, 4, 1, 2, 0]
    assert found[0]["params"] == {"RATE": "0.3", "SIZE": "2"} and found[0]["metrics"]["accuracy"] == pytest.approx(1.2)
    return found
