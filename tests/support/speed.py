"""CPU time in seconds of a reference machine, so that a limit means the same on a slow or busy one."""

import json
import re
import time

YARDSTICK_S = 0.02
"""CPU time of the yardstick on the reference machine: two cores of a cloud's general purpose machine, with CPython
3.11, 2026-11."""
_TEXT = json.dumps([{f"key{number}": [number, "word " * 5]} for number in range(400)])


def _yardstick() -> float:
    """CPU seconds of some fixed work, like that of reading a document."""
    begun = time.process_time()
    for _ in range(32):
        rows = json.loads(_TEXT)
        words = [word for row in rows for (_, text) in row.values() for word in re.findall(r"\w+", text)]
        assert len({(at, word) for at, word in enumerate(words)}) == 2000
    return time.process_time() - begun


def reference_seconds(cpu_s: float) -> float:
    """What this process's CPU seconds would be on the reference machine."""
    return cpu_s * YARDSTICK_S / _yardstick()


class CpuTime:
    """`with CpuTime() as cpu: ...` and then `cpu.seconds`. The machine's speed is measured before and after."""

    seconds = 0.0

    def __enter__(self) -> "CpuTime":
        self._before_s = _yardstick()
        self._begun = time.process_time()
        return self

    def __exit__(self, *raised: object) -> None:
        took_s = time.process_time() - self._begun
        self.seconds = took_s * YARDSTICK_S / max(self._before_s, _yardstick())
