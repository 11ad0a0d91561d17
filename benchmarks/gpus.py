"""Share of one core that a line about 16 GPUs costs a program that writes one every second. NVIDIA's own library is
used if there is one (`python -m benchmarks.gpus` on a machine with GPUs also prints what the health check finds), else
a stand-in that answers at once, so that the figure is that of our code."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from jobs.runtime.gpus_nvml import Nvml
from jobs.runtime.gpus_stats import Stats

from .measure import Failed, Line

LIMIT_PERCENT = 0.5
LINES = 500
EVERY_S = 1.0


def measure(scratch: Path) -> Iterator[Line]:
    from tests.support import fake_nvml

    try:
        source, told = Nvml(), "NVIDIA's NVML"
    except OSError:
        if fake_nvml.compiler() is None:
            raise Failed("there is neither NVIDIA's library nor a C compiler to make one that stands in") from None
        os.environ["FAKE_NVML"] = "gpus=16"
        source, told = Nvml(str(fake_nvml.build(scratch))), "a stand-in for NVML"
    with (scratch / "lines").open("w") as log:
        stats = Stats(every_s=EVERY_S, write=lambda line: print(line, file=log, flush=True))
        stats.line(source)
        began = time.thread_time()
        for _ in range(LINES):
            stats.line(source)
        spent_s = (time.thread_time() - began) / LINES
    gpus = len(source.read())
    yield Line(
        f"stats of {gpus} GPUs every second, {told}", 100 * spent_s / EVERY_S, "% of a core", limit=LIMIT_PERCENT
    )


def main() -> int:
    """Return 1 if a limit is broken."""
    from jobs.runtime import health

    with tempfile.TemporaryDirectory() as scratch:
        found = list(measure(Path(scratch)))
    for line in found:
        print(line)
    checked = health.check()
    print(f"health: {checked.summary}")
    return int(any(line.broken for line in found))


if __name__ == "__main__":
    sys.exit(main())
