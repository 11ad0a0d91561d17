"""A preview of the dev environment against one of an empty program."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from .empty import empty_program
from .measure import ROOT, Line, medians_s, run


def measure(scratch: Path) -> Iterator[Line]:
    empty = (("pulumi", "preview", "--stack", "empty", "--non-interactive"), empty_program(scratch))
    # Pulumi writes a salt into the config of the stacks it touches: it gets a copy.
    copy = scratch / "dev"
    copy.mkdir()
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml"):
        shutil.copy(ROOT / name, copy)
    run(("pulumi", "stack", "select", "--create", "dev"), copy)
    preview = ("pulumi", "preview", "--stack", "dev", "--config-file", copy / "Pulumi.dev.yaml")
    count = len(json.loads(run((*preview, "--json")))["steps"])
    empty_s, dev_s = medians_s([empty, ((*preview, "--non-interactive"), ROOT)])
    yield Line(
        f"preview of dev, {count} resources",
        dev_s,
        "s",
        "an empty program's",
        empty_s,
        limit=1.5 * empty_s + 0.010 * count,
    )
