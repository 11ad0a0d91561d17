"""Which prices and offers are read: those of this distribution, or those of a refresh where $ACCEL_CATALOG asks."""

from __future__ import annotations

import os

CHOICE = "ACCEL_CATALOG"
"""Environment variable: `refreshed`, or the path of a folder. Without it, or empty, the shipped data is read."""

NEWEST = "refreshed"
"""The value that means the newest catalogue in the cache."""

REFRESHED = ("prices.csv", "regions.csv", "sources.csv")
"""What such a folder holds in whole."""

ADDED = ("accelerators.csv", "machines.csv")
"""What it may hold the lines of that this distribution lacks; every other file is always that of this distribution."""


class NoCatalogue(Exception):
    """What $ACCEL_CATALOG names is not there, or cannot be read. No ValueError, as DamagedData is none."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{CHOICE}={os.environ.get(CHOICE, '')}: {why}")


def cache() -> str:
    """The user's folder of refreshed catalogues, one dated folder each; it need not exist."""
    import platformdirs  # only where a refresh is asked for

    return os.path.join(platformdirs.user_cache_dir("accel"), "catalog")  # noqa: PTH118  pathlib takes 5 ms to import


def snapshots() -> list[str]:
    """The names of the refreshed catalogues in the cache, the oldest first; drafts begin with a dot."""
    try:
        return sorted(name for name in os.listdir(cache()) if not name.startswith("."))  # noqa: PTH208  as above
    except FileNotFoundError:
        return []


def folder(choice: str) -> str:
    """The folder that a value of $ACCEL_CATALOG means. Raises NoCatalogue."""
    if choice != NEWEST:
        return choice
    names = snapshots()
    if not names:
        raise NoCatalogue(f"nothing was refreshed yet into {cache()}")
    return os.path.join(cache(), names[-1])  # noqa: PTH118  as above
