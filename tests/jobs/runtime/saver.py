"""A program that saves checkpoints, and can be killed at any byte: `python saver.py WHERE STEPS SIZE [KILL_AT]`.

It resumes, saves each step up to STEPS, and prints `saved N` after each. With KILL_AT it kills itself once it has done
so much to the disk: a byte counts one, a call that changes a folder or waits for the disk CALL. It ends with the line
`total N`, what it has done.
"""

import hashlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from jobs.runtime import Checkpoints, gcs, writing
from jobs.runtime import checkpoints as checkpoints_module

CALL = 100
FOLDER_FILE = "extra/told.txt"


def content(step: int, size: int) -> bytes:
    """What the checkpoint of a step holds."""
    block = hashlib.sha256(b"%d" % step).digest()
    return (block * (size // len(block) + 1))[:size]


def count_calls(kill_at: int) -> list[int]:
    """Counts what is done to the disk; at `kill_at` the process is gone, in the middle of a write where that is."""
    done = [0]

    def step(weight: int) -> None:
        done[0] += weight
        if 0 <= kill_at <= done[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def after(*given: Any, **named: Any) -> Any:
            step(CALL)
            return call(*given, **named)

        return after

    real_write = os.write

    def write(file: int, data: Any) -> int:
        if file < 3:
            return real_write(file, data)
        if 0 <= kill_at < done[0] + len(data):
            real_write(file, bytes(data)[: kill_at - done[0]])
        step(len(data))
        return real_write(file, data)

    os.write = write
    for name in ("rename", "replace", "mkdir", "rmdir", "unlink", "fsync"):
        setattr(os, name, counted(getattr(os, name)))
    return done


def main(where: str, steps: int, size: int, kill_at: int = -1) -> None:
    """Saves."""
    gcs.PART = 16 << 10  # so that small files go up in parts
    writing.PIECE = checkpoints_module.PIECE = 8 << 10
    writing.AHEAD = 32 << 10
    checkpoints = Checkpoints(where, keep=2, interval_s=0)
    done = count_calls(kill_at) if "://" not in where else [0]
    found = checkpoints.resume()
    start = found.step if found else 0
    for step in range(start + 1, steps + 1):

        def write(into: writing.Writing, step: int = step) -> None:
            with into.open("state.bin") as file:
                file.write(content(step, size))
            (into.folder / FOLDER_FILE).parent.mkdir()
            (into.folder / FOLDER_FILE).write_text(str(step))

        assert checkpoints.due()
        checkpoints.save(step, write)
        print(f"saved {step}", flush=True)
    print(f"total {done[0]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
