"""A loose guard of what a look-up costs, in CPU time; the benchmarks measure it."""

import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from accel.catalog import accelerator, interruption, machine, machines_for, price, zones

FIRST = """
import time
start = time.process_time()
from accel.catalog import machine, price, zones
machine("gcp", "a2-highgpu-1g")
price("gcp", "us-central1", "a2-highgpu-1g")
zones("gcp", "us-central1", "a2-highgpu-1g")
print(time.process_time() - start)
"""


def test_import_and_the_first_look_ups() -> None:
    command = [sys.executable, "-c", FIRST]
    best = min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(3))
    assert best < 0.15


@pytest.mark.parametrize(
    "call",
    [
        lambda: machine("gcp", "a2-highgpu-1g"),
        lambda: accelerator("h100"),
        lambda: price("gcp", "us-central1", "a2-highgpu-1g"),
        lambda: zones("gcp", "us-central1", "a2-highgpu-1g"),
        lambda: interruption("us-east-1", "g5.xlarge"),
        lambda: machines_for("l4", 1),
    ],
)
def test_warm_look_ups_take_microseconds(call: Callable[[], object]) -> None:
    call()
    start = time.process_time()
    for _ in range(1000):
        call()
    assert time.process_time() - start < 0.1
