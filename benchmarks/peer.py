"""A peer's command, in a virtual environment of its own in the user's cache."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import platformdirs

from .measure import PYTHON, ROOT, run


def command(requirements: str, name: str) -> Path:
    """Return a command that a file of this folder pins, installed the first time. Raise Failed if it cannot be had."""
    pinned = ROOT / "benchmarks" / requirements
    home = Path(platformdirs.user_cache_dir("accel")) / re.sub(r"\[.*\]", "", pinned.read_text().strip())
    home = home.with_name(home.name.replace("==", "-"))
    found = home / "bin" / name
    if not found.exists():
        # A half-made one has no command: pip installs scripts last.
        shutil.rmtree(home, ignore_errors=True)
        pip = (home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run((PYTHON, "-m", "venv", home))
        run((*pip, "-r", pinned))
    return found
