"""How long the `jobs` command takes to start, against bare Python and the AWS command."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .measure import PYTHON, ROOT, Failed, Line, medians_s
from .peer import command

JOBS = (PYTHON, "-m", "jobs")
DRY_RUN = (*JOBS, "submit", "examples/jobs/digits.yaml", "--to", "gpu", "--dry-run")
LIMITS = {"jobs --help": 7.5, "jobs submit --dry-run": 20}
"""Times `python -c pass`: 150 and 400 ms on a machine where that takes 20."""
RUNS = 9


def measure(scratch: Path) -> Iterator[Line]:
    """Require a target that `make up` has exported."""
    commands: list[Sequence[str | Path]] = [(PYTHON, "-c", "pass"), (*JOBS, "--help"), DRY_RUN]
    if aws := _aws():
        commands.append((aws, "--version"))
    bare, helped, dry, *rest = (1000 * value for value in medians_s([(one, ROOT) for one in commands], RUNS))
    for (name, times), value in zip(LIMITS.items(), (helped, dry), strict=True):
        yield Line(name, value, "ms", "python -c pass", bare, times * bare)
        for aws_ms in rest:
            yield Line(name, value, "ms", "aws --version", aws_ms)


def _aws() -> Path | None:
    """Return None, with a line on stderr, where it cannot be had."""
    try:
        return command("requirements.txt", "aws")
    except Failed as failure:
        sys.stderr.write(f"aws --version is missing: {failure}\n")
        return None
