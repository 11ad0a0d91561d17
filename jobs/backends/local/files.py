"""The files of a local job, which several processes write and read."""

import json
import os
from pathlib import Path
from typing import Any

from accel.diagnostics import faults
from accel.diagnostics.errors import CloudSilent

from ...model import keys
from .records import Record


def put_if_absent(path: Path, value: dict[str, Any]) -> bool:
    """Whole or not at all, and only the first of several writers: link() is atomic and never replaces."""
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
    """Raises CloudSilent where the file is there and cannot be read, or is none of its kind: that says nothing about
    the job."""
    try:
        document: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CloudSilent(f"cannot read {path}: {error}") from error
    if wrong := faults.find(kind, document):
        raise CloudSilent(f"cannot read {path}: {wrong[0]}", "restore the file, or remove the job's folder")
    return document


def read_if_there(path: Path, kind: type[Record]) -> dict[str, Any] | None:
    """As read; None where there is no file."""
    return read(path, kind) if path.exists() else None


def numbers(folder: Path) -> list[int]:
    """Of the folders in it that are numbered, in order; none where it is not there."""
    return sorted(int(each.name) for each in folder.iterdir() if each.name.isdecimal()) if folder.exists() else []
