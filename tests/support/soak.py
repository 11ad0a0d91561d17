"""What is run by `make soak` alone: more of the same as what `make test` runs."""

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest

SOAK = bool(os.environ.get("ACCEL_SOAK"))
soak_only = pytest.mark.skipif(not SOAK, reason="more of what `make test` runs too: make soak")


def sampled(cases: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """Parameters of a test, of which `make test` runs those that are kept."""

    def left(case: Any) -> Any:
        return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=soak_only)

    return [case if case in kept else left(case) for case in cases]
