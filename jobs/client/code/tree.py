"""The files of a folder that are its code: the files that Git tracks, and those that it would add."""

import os
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from accel.diagnostics.errors import BadInput

TIMEOUT_S = 120
_LISTED = {True: ("--cached",), False: ("--others", "--exclude-standard")}
"""Options of `git ls-files` for tracked and untracked files, as `git add` would see them. Source:
https://git-scm.com/docs/git-ls-files"""
_MISLEADING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
"""Variables that Git sets inside hooks, for the hook's own repository."""


@dataclass(frozen=True, order=True)
class Entry:
    """A file or symbolic link, by its path below the folder, with slashes."""

    name: str
    size: int
    """Bytes; 0 for a link."""
    executable: bool = False
    link: str | None = None
    """Target of a link."""
    tracked: bool = False


@dataclass(frozen=True)
class Tree:
    """Files of a folder, sorted by name, and a line for each that was left out."""

    folder: Path
    entries: tuple[Entry, ...]
    left_out: tuple[str, ...] = ()
    everything: bool = False
    """True if files that Git ignores are included."""


def read(folder: Path, *, everything: bool = False) -> Tree:
    """Read what Git has or would add; with `everything` all but Git's own. Raises BadInput without folder or Git."""
    if not folder.is_dir():
        raise BadInput(f"--code: {folder} is not a folder")
    left_out: list[str] = []
    names = _all(folder) if everything else _known(folder, left_out)
    entries: dict[str, Entry] = {}
    for name, tracked in names:
        if name in entries:
            continue
        seen = _entry(folder, name, tracked)
        if isinstance(seen, Entry):
            entries[name] = seen
        elif seen:
            left_out.append(seen)
    return Tree(folder, tuple(entries[name] for name in sorted(entries)), tuple(left_out), everything)


def _entry(folder: Path, name: str, tracked: bool) -> Entry | str | None:
    """Return the entry, a line why it is left out, or None for a tracked file that is not in the folder."""
    path = folder / name
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadInput(f"--code: {printable(name)}: {error.strerror}") from error
    if stat.S_ISLNK(found.st_mode):
        return Entry(name, 0, link=str(path.readlink()), tracked=tracked)
    if not stat.S_ISREG(found.st_mode):
        return f"{printable(name)}: is neither a file nor a link, and is left out"
    return Entry(name, found.st_size, bool(found.st_mode & stat.S_IXUSR), tracked=tracked)


def _all(folder: Path) -> Iterator[tuple[str, bool]]:
    def fail(error: OSError) -> None:
        raise BadInput(f"--code: {printable(str(error.filename))}: {error.strerror}")

    for root, folders, files in os.walk(folder, onerror=fail):
        below = Path(root).relative_to(folder)
        links = [name for name in folders if (Path(root) / name).is_symlink()]
        folders[:] = [name for name in folders if name != ".git" and name not in links]
        # A worktree has a file of that name.
        yield from ((str(PurePosixPath(below / name)), False) for name in [*files, *links] if name != ".git")


def _known(folder: Path, left_out: list[str], inside: str = "") -> Iterator[tuple[str, bool]]:
    """Yield names relative to the first folder, each with whether it is tracked; include repositories inside it."""
    for tracked, options in _LISTED.items():
        for name in _git(folder, *options):
            path = folder / name
            full = f"{inside}{name.rstrip('/')}"
            if path.is_symlink() or not path.is_dir():
                yield full, tracked
            elif (path / ".git").exists():
                yield from _known(path, left_out, f"{full}/")
            else:
                left_out.append(f"{printable(full)}: is a submodule that is not checked out, and is left out")


def _git(folder: Path, *options: str) -> list[str]:
    # fsmonitor off: a repository can name a program as its file system monitor, which this would run.
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), "ls-files", "-z", *options]
    environ = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    try:
        done = subprocess.run(command, capture_output=True, env=environ, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise _unknown(folder, "there is no git here") from None
    except subprocess.TimeoutExpired:
        raise _unknown(folder, f"git did not answer in {TIMEOUT_S} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise _unknown(folder, said[0] if said else f"git ended with {done.returncode}")
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _unknown(folder: Path, why: str) -> BadInput:
    return BadInput(
        f"--code: which files of {folder} are code is not known: {why}",
        "`git init` there is enough, and .gitignore says what stays here; or --code-all sends every file",
    )


def printable(name: str) -> str:
    return name if name.isprintable() else ascii(name)
