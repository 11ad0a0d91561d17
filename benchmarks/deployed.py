"""A sandbox of a benchmark's own, with an environment deployed on it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from sandbox.environment import environment
from sandbox.processes import start, stop

from .measure import ROOT, run


@contextmanager
def sandbox(scratch: Path, parts: Collection[str]) -> Generator[tuple[Path, dict[str, str], float]]:
    """Yield its folder, the variables that lead to it and to the targets that `deploy` writes, and its start in s."""
    home = scratch / "sandbox"
    try:
        started = time.perf_counter()
        start(home, parts)
        took_s = time.perf_counter() - started
        own = {"ACCEL_TARGETS": str(scratch / "targets.json"), "XDG_STATE_HOME": str(scratch / "state")}
        yield home, environment(home) | own, took_s
    finally:
        stop(home, wipe=True)


def google_section() -> dict[str, Any]:
    values = yaml.safe_load((ROOT / "Pulumi.sandbox.yaml").read_text())["config"]["accel:environment"]
    del values["aws"]
    return values


def deploy(scratch: Path, variables: dict[str, str], values: dict[str, Any]) -> None:
    """Deploy the environment, and write its targets to where the variables say."""
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, scratch)
    (scratch / "Pulumi.yaml").write_text("name: accel\nruntime: python\n")
    (scratch / "Pulumi.bench.yaml").write_text(yaml.safe_dump({"config": {"accel:environment": values}}))
    settings = {**variables, "PYTHONPATH": str(ROOT)}
    run(("pulumi", "stack", "select", "--create", "bench"), scratch, settings)
    run(("pulumi", "up", "--stack", "bench", "--yes", "--skip-preview", "--non-interactive"), scratch, settings)
    targets = run(("pulumi", "stack", "output", "targets", "--json", "--stack", "bench"), scratch, settings)
    Path(variables["ACCEL_TARGETS"]).write_text(targets)
