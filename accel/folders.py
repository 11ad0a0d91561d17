"""Folders for data that outlives a command, following the XDG base directory specification."""

import json
import os
from pathlib import Path
from typing import Any


def state() -> Path:
    """Return $XDG_STATE_HOME/accel, which holds local jobs and the history of submitted ones."""
    return _base("XDG_STATE_HOME", ".local/state") / "accel"


def cache() -> Path:
    """Return $XDG_CACHE_HOME/accel, which may be deleted at any time."""
    return _base("XDG_CACHE_HOME", ".cache") / "accel"


def write_json(path: Path, value: Any) -> None:
    """Replace a file atomically: a reader sees the old text or the new one, never a part."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(value, indent=1))
    draft.replace(path)


def _base(variable: str, default: str) -> Path:
    # The specification says to ignore a relative path in these variables.
    value = os.environ.get(variable, "")
    return Path(value) if Path(value).is_absolute() else Path.home() / default
