"""Files of a local job, which several processes write and read."""

import json
import os
from pathlib import Path
from typing import Any

from accel.diagnostics import faults
from accel.diagnostics.errors import CloudSilent

from ...model import keys
from .records import Record


def put_if_absent(path: Path, value: dict[str, Any]) -> bool:
    """Write the file completely or not at all, for the first of several writers only: link() is atomic and never
    replaces."""
    draft = path.with_name(f".{path.name}.{keys.random_key()}")
    draft.write_text(json.dumps(value))
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def read(path: Path, kind: type[Record]) -> dict[str, Any]:
    """Read a record. Raise CloudSilent if the file exists and is unreadable or of another kind: that says nothing about
    the job."""
    try:
        document: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CloudSilent(f"cannot read {path}: {error}") from error
    if wrong := faults.find(kind, document):
        raise CloudSilent(f"cannot read {path}: {wrong[0]}", "restore the file, or remove the job's folder")
    return document


def read_if_there(path: Path, kind: type[Record]) -> dict[str, Any] | None:
    """Read a record; return None if there is no file."""
    return read(path, kind) if path.exists() else None


def numbers(folder: Path) -> list[int]:
    """Return the numbers of the numbered folders in a folder, in order; none if it does not exist."""
    return sorted(int(each.name) for each in folder.iterdir() if each.name.isdecimal()) if folder.exists() else []
