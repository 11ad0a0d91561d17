"""What the report of a change adds to its preview: everything but the preview itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .measure import PYTHON, ROOT, Failed, Line, medians_s, run

RESOURCES = 150
LIMIT_S = 3.0


def measure(scratch: Path) -> Iterator[Line]:
    """Allow 3 s for 150 resources, jobs and quotas asked for. The stack is the one that `up` deployed; in its new
    environment every instance is another one, and there are queues enough for so many resources."""
    values = yaml.safe_load((ROOT / "Pulumi.sandbox.yaml").read_text())
    environment: dict[str, Any] = values["config"]["accel:environment"]
    environment.pop("gcp")
    section = environment["aws"]
    for spec in section["environments"].values():
        spec["instance"] = {"disk_gib": 300}
    (queue,) = section["queues"].values()
    section["queues"] |= {f"queue-{index:03}": queue for index in range(RESOURCES // 4)}
    shutil.copy(ROOT / "Pulumi.yaml", scratch)
    config = scratch / "Pulumi.sandbox.yaml"
    config.write_text(yaml.safe_dump({"config": {"accel:environment": environment}}))
    kept = scratch / "preview.json"
    kept.write_text(run(("pulumi", "preview", "--json", "--stack", "sandbox", "--config-file", config)))
    count = sum(json.loads(kept.read_text())["changeSummary"].values())
    if count < RESOURCES:
        raise Failed(f"the preview has {count} resources, not {RESOURCES}")
    report = (PYTHON, "-m", "stacks", "report", "sandbox", "--preview", str(kept), "-o", "json")
    found = json.loads(run(report))
    if found["jobs"]["unread"] or not found["jobs"]["at_stake"] or not found["quota"]["rows"]:
        raise Failed("the report did not ask for jobs and quotas")
    (seconds,) = medians_s([(report, ROOT)])
    yield Line(f"report of a preview of {count} resources, beside the preview", seconds, "s", limit=LIMIT_S)
