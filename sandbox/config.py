"""The configuration that `make up` deploys: Pulumi.sandbox.yaml, or one cloud of it."""

import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from . import Fault
from .environment import project

NEEDS = {"aws": "cloud", "gcp": "kubernetes"}
"""The part of the sandbox without which a cloud's section cannot be deployed."""
CLOUDS = tuple(NEEDS)


def config_of(home: Path, cloud: str | None, running: Collection[str]) -> Path:
    """Writes the file into the sandbox's folder. Raises Fault for a cloud whose part does not run."""
    document: Any = yaml.safe_load((project() / "Pulumi.sandbox.yaml").read_text())
    environment = document["config"]["accel:environment"]
    for name, part in NEEDS.items():
        if name == cloud and part not in running:
            raise Fault(6, f"{name} needs the sandbox's part {part}, which does not run", "python -m sandbox start")
        if cloud not in (None, name) or part not in running:
            if cloud is None:
                sys.stderr.write(f"warning: {name} is left out: the sandbox's part {part} does not run\n")
            environment.pop(name, None)
    path = home / "Pulumi.sandbox.yaml"
    kept = yaml.safe_load(path.read_text()) if path.exists() else {}
    # What Pulumi itself wrote, the salt of the stack's secrets, stays.
    path.write_text(yaml.safe_dump({**document, **kept, "config": document["config"]}, sort_keys=False))
    return path
