"""What is refused: names that another machine cannot have, and links that lead outside."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from .tree import Entry, printable

OURS = ".accel"
"""Folder of an archive that holds what accel adds."""


def faults(folder: Path, entries: Iterable[Entry]) -> list[str]:
    """Why files of the folder are not sent, a line each."""
    return [f"--code: {printable(entry.name)}: {fault}" for entry in entries for fault in _of(folder, entry)]


def _of(folder: Path, entry: Entry) -> Iterator[str]:
    parts = entry.name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        yield "is not a name below the folder"
    if not _utf8(entry.name):
        yield "its name is not UTF-8; rename it"
    if parts[0] == OURS:
        yield f"{OURS} is for what accel adds; rename it"
    if entry.link is not None:
        yield from _link(folder, entry.name, entry.link)


def _link(folder: Path, name: str, target: str) -> Iterator[str]:
    if not _utf8(target):
        yield "it leads to a name that is not UTF-8"
    elif target.startswith("/"):
        yield f"leads to {printable(target)}, which another machine does not have; make it a relative link or a file"
    else:
        root = os.path.realpath(folder)
        # As it is read, and as it is on this machine, through other links.
        read, led = os.path.normpath(f"{root}/{name}/../{target}"), os.path.realpath(f"{root}/{name}")
        if not all(os.path.commonpath([root, path]) == root for path in (read, led)):
            yield f"leads to {printable(target)}, outside of the folder; put a file there"


def _utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
