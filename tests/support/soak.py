"""What is run by `make soak` alone: more of the same as what `make test` runs."""

import os

import pytest

SOAK = bool(os.environ.get("ACCEL_SOAK"))
soak_only = pytest.mark.skipif(not SOAK, reason="more of what `make test` runs too: make soak")
