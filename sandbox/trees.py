"""Ends of processes together with what they started."""

import psutil


def kill_tree(pid: int) -> None:
    """Send SIGKILL to a process and its descendants."""
    _kill(pid, root=True)


def kill_below(pid: int) -> None:
    """Send SIGKILL to a process's descendants only, so that it can still report how they ended."""
    _kill(pid, root=False)


def _kill(pid: int, *, root: bool) -> None:
    try:
        process = psutil.Process(pid)
        tree = [*process.children(recursive=True), *([process] if root else [])]
    except psutil.NoSuchProcess:
        return
    for each in tree:
        try:
            each.kill()
        except psutil.NoSuchProcess:
            continue
