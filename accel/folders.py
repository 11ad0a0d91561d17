"""Folders and files for data that outlives a command, following the XDG base directory specification."""

import json
import os
from pathlib import Path
from typing import Any

from .files import replace_file


def state() -> Path:
    """Return $XDG_STATE_HOME/accel, which holds local jobs and the history of submitted ones."""
    return _base("XDG_STATE_HOME", ".local/state") / "accel"


def cache() -> Path:
    """Return $XDG_CACHE_HOME/accel, which may be deleted at any time."""
    return _base("XDG_CACHE_HOME", ".cache") / "accel"


def write(path: Path, data: str | bytes) -> None:
    """Replace a file as a whole. Create its folder, for this user alone, if there is none. Raise OSError."""
    try:
        replace_file(path, data)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, data)


def write_json(path: Path, value: Any) -> None:
    write(path, json.dumps(value, indent=1))


def _base(variable: str, default: str) -> Path:
    # The specification says to ignore a relative path in these variables.
    value = os.environ.get(variable, "")
    return Path(value) if Path(value).is_absolute() else Path.home() / default
