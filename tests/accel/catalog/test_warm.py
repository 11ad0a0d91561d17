"""A second look-up costs nothing but memory; how long look-ups take is measured by `make bench`."""

import builtins
import io
from collections.abc import Callable

import pytest

from accel.catalog import accelerator, interruption, machine, machines_for, price, zones

CALLS: dict[str, Callable[[], object]] = {
    "machine": lambda: machine("gcp", "a2-highgpu-1g"),
    "accelerator": lambda: accelerator("h100"),
    "price": lambda: price("gcp", "us-central1", "a2-highgpu-1g"),
    "zones": lambda: zones("gcp", "us-central1", "a2-highgpu-1g"),
    "interruption": lambda: interruption("us-east-1", "g5.xlarge"),
    "machines_for": lambda: machines_for("l4", 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warm_look_up_reads_no_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = CALLS[name]()
    for module in (builtins, io):
        monkeypatch.setattr(module, "open", lambda *_, **__: pytest.fail("opens a file again"))
    assert CALLS[name]() == first
