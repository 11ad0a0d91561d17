"""How long the catalogue takes to answer its first questions, and a decision over the targets of a stack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .measure import PYTHON, ROOT, Line, medians_s

LOOK_UP = """
from accel.catalog import machine, price, zones
machine("aws", "g6.xlarge"), price("aws", "us-east-1", "g6.xlarge"), zones("aws", "us-east-1", "g6.xlarge")
"""
FIRST_LIMIT_MS = 60
OFFERS = (PYTHON, "-m", "jobs", "offers", "examples/jobs/digits.yaml")
DRY_RUN = (PYTHON, "-m", "jobs", "submit", "examples/jobs/digits.yaml", "--to", "gpu", "--dry-run")
DECISION_LIMIT_MS = 100
RUNS = 9


def measure(scratch: Path) -> Iterator[Line]:
    """Time them; `make up` has to have exported a target."""
    commands = [((PYTHON, "-c", code), ROOT) for code in ("pass", LOOK_UP)] + [(OFFERS, ROOT), (DRY_RUN, ROOT)]
    bare, first, offers, dry = (1000 * value for value in medians_s(commands, RUNS))
    yield Line(
        "catalogue: import, machine, price, zones",
        first - bare,
        "ms",
        "python -c pass",
        bare,
        FIRST_LIMIT_MS,
    )
    # A dry run reads the same file and target and renders once; what offers takes longer is the decision.
    yield Line("jobs offers over a dry run", max(offers - dry, 0.0), "ms", "the dry run", dry, DECISION_LIMIT_MS)
