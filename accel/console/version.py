"""The commit that this is of, where that is known: of a checkout, or of a package that was installed from Git."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

_SHOWN = 12
_LOOK_S = 5


def commit() -> str:
    """`, commit 1a2b3c4d5e6f`, with changes where a checkout has some; else nothing."""
    root = Path(__file__).resolve().parents[2]
    found = _of_checkout(root) if (root / ".git").exists() else _of_package()
    return f", commit {found}" if found else ""


def _of_checkout(root: Path) -> str:
    if not (git := shutil.which("git")):
        return ""
    # A repository can name a program as its file system's monitor, which this would run.
    ask = [git, "-c", "core.fsmonitor=false", "-C", str(root), "describe", "--always", "--exclude=*", "--abbrev=12"]
    try:
        done = subprocess.run(
            [*ask, "--dirty= with changes"], capture_output=True, text=True, timeout=_LOOK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _of_package() -> str:
    """What pip noted. Source: https://packaging.python.org/en/latest/specifications/direct-url/"""
    from importlib.metadata import distribution, packages_distributions

    for name in packages_distributions().get("accel", ()):
        try:
            noted: Any = json.loads(distribution(name).read_text("direct_url.json") or "{}")
            return str(noted["vcs_info"]["commit_id"])[:_SHOWN]
        except (ValueError, KeyError, TypeError):
            continue
    return ""
