"""Numbers of jobs and machines: a Google that is started again in the same home gives none that was given before."""

from __future__ import annotations

import time
from pathlib import Path

from sandbox.google.world import World


def test_no_number_is_given_twice(tmp_path: Path) -> None:
    killed = World(tmp_path, "key", 0.1)
    before = [killed.number() for _ in range(50)]
    time.sleep(0.001)  # far less than a start takes, and more than those numbers can be ahead of the clock
    started = World(tmp_path, "key", 0.1)
    numbers = [*before, *(started.number() for _ in range(50))]
    assert len({*numbers}) == 100 and {len(str(each)) for each in numbers} == {19}
