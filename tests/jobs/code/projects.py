"""Folders of code, and the program of a job run on an archive of them."""

import os
import subprocess
import sys
from pathlib import Path

from jobs.client.code.archive import Archive
from jobs.client.code.inside import program
from jobs.client.code.shipping import Folder


def git(folder: Path, *arguments: str) -> None:
    person = ("-c", "user.name=p", "-c", "user.email=p@x")
    subprocess.run(["git", "-C", str(folder), *person, *arguments], check=True, capture_output=True)


def project(folder: Path, files: dict[str, str | bytes], *, repository: bool = True) -> Path:
    """A folder with these files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if repository:
        git(folder, "init", "-q")
    return folder


def ran(
    source: str, archive: Archive, *command: str, within: Path | str = "-", scheme: str = "file", **env: str
) -> subprocess.CompletedProcess[str]:
    """The program, started as a container would."""
    words = [source, archive.digest, str(archive.size), str(within), *command]
    own = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    argv = [sys.executable, "-I", "-c", program(scheme), *words]
    return subprocess.run(argv, env=own | env, capture_output=True, text=True, timeout=120, check=False)


def here(archive: Archive, kept: Path) -> str:
    """The archive in a folder of this machine."""
    store = Folder(kept)
    store.put(archive)
    return store.source(archive)
