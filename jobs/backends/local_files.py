"""The files of a local job, which several processes write and read."""

import json
import os
from pathlib import Path
from typing import Any

from .. import keys
from ..errors import CloudSilent


def put_if_absent(path: Path, value: dict[str, Any]) -> bool:
    """Whole or not at all, and only the first of several writers: link() is atomic and never replaces."""
    draft = path.with_name(f".{path.name}.{keys.drawn()}")
    draft.write_text(json.dumps(value))
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def read(path: Path) -> dict[str, Any]:
    """Raises CloudSilent where the file is there and cannot be read: that says nothing about the job."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CloudSilent(f"cannot read {path}: {error}") from error


def read_if_there(path: Path) -> dict[str, Any] | None:
    """As read; None where there is no file."""
    return read(path) if path.exists() else None
