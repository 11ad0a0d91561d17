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
    """Write the whole file or nothing, and only for the first of several writers: link() is atomic, never replaces."""
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
    """Raise CloudSilent if the file exists and is unreadable or of another kind: that says nothing about the job."""
    try:
        document: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CloudSilent(f"cannot read {path}: {error}") from error
    if wrong := faults.find(kind, document):
        raise CloudSilent(f"cannot read {path}: {wrong[0]}", "restore the file, or remove the job's folder")
    return document


def read_if_there(path: Path, kind: type[Record]) -> dict[str, Any] | None:
    return read(path, kind) if path.exists() else None


def numbers(folder: Path) -> list[int]:
    return sorted(int(each.name) for each in folder.iterdir() if each.name.isdecimal()) if folder.exists() else []
