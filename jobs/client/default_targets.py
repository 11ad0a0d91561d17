"""The `.accel/targets.json` that is read where nobody names a source: of the working folder or of one above it, as far
as the root of the repository; outside of one, as far as the home folder.

Whoever writes that file decides where jobs go, and with them code and credentials. So one that somebody else may have
written is passed over.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

USUAL = Path(".accel", "targets.json")
REPOSITORY = ".git"
"""A folder, or a file in a worktree."""


def find(here: Path) -> tuple[Path | None, tuple[str, ...]]:
    """The file that counts, and a line for each that is passed over."""
    passed: list[str] = []
    for folder in _searched(here):
        path = folder / USUAL
        if not _there(path):
            continue
        fault = _fault(path)
        if fault is None:
            return path, tuple(passed)
        passed.append(f"targets: {path} is ignored: {fault}; who trusts it names it: --targets {path}")
    return None, tuple(passed)


def _searched(here: Path) -> list[Path]:
    above = [here, *here.parents]
    ends = [folder for folder in above if _there(folder / REPOSITORY)]
    ends += [folder for folder in above if folder == Path.home()]
    return above[: above.index(ends[0] if ends else here) + 1]


def _there(path: Path) -> bool:
    """What may not be seen is not there."""
    with suppress(PermissionError):
        return path.exists()
    return False


def _fault(path: Path) -> str | None:
    """Who else may have written the file: by itself, by its folder, or by the folder that holds that."""
    for each in (path, path.parent, path.parents[1]):
        for found in (each.lstat(), each.stat()):
            if found.st_uid not in (os.geteuid(), 0):
                return f"{each} belongs to {_user(found.st_uid)}"
            if not stat.S_ISLNK(found.st_mode) and _others_may_write(found):
                return f"others may write {each} (mode {stat.S_IMODE(found.st_mode):o})"
    return None


def _others_may_write(found: os.stat_result) -> bool:
    if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX:
        return False  # they may add to it, and take nothing away
    return bool(found.st_mode & stat.S_IWOTH) or bool(found.st_mode & stat.S_IWGRP and not _own_group(found.st_gid))


def _own_group(number: int) -> bool:
    """Whether the group is the user's private one. Source: https://wiki.debian.org/UserPrivateGroups"""
    import grp
    import pwd

    with suppress(KeyError):
        name, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(number)
        return group.gr_name == name and set(group.gr_mem) <= {name}
    return False


def _user(number: int) -> str:
    import pwd

    with suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return f"user {number}"
