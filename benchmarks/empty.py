"""A Pulumi program that does nothing: what the engine alone costs."""

from __future__ import annotations

import json
from pathlib import Path

from .measure import ROOT, run


def empty_program(scratch: Path) -> Path:
    folder = scratch / "empty"
    if not folder.exists():
        folder.mkdir()
        options = {"toolchain": "pip", "virtualenv": str(ROOT / ".venv")}
        project = {"name": "empty", "runtime": {"name": "python", "options": options}}
        (folder / "Pulumi.yaml").write_text(json.dumps(project))
        (folder / "__main__.py").write_text("")
        run(("pulumi", "stack", "select", "--create", "empty"), folder)
    return folder
