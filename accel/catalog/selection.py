"""Source of prices and offers: the shipped data, or a refreshed catalogue if $ACCEL_CATALOG asks for one."""

from __future__ import annotations

import os

CHOICE = "ACCEL_CATALOG"
"""Environment variable: `refreshed`, or the path of a folder. If unset or empty, the shipped data is read."""

NEWEST = "refreshed"
"""Value for the newest catalogue in the cache."""

REFRESHED = ("prices.csv", "regions.csv", "sources.csv")
"""Files that such a folder replaces entirely."""

ADDED = ("accelerators.csv", "machines.csv")
"""Files to which such a folder may add lines. All other files are always the shipped ones."""


class NoCatalog(Exception):
    """A catalogue of $ACCEL_CATALOG that is missing or unreadable. No ValueError, for the same reason as
    DamagedData."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{CHOICE}={os.environ.get(CHOICE, '')}: {why}")


def cache() -> str:
    """Return the user's folder of refreshed catalogues, each a dated folder. It need not exist."""
    import platformdirs  # only where a refresh is asked for

    return os.path.join(platformdirs.user_cache_dir("accel"), "catalog")  # noqa: PTH118  pathlib takes 5 ms to import


def snapshots() -> list[str]:
    """Return the names, oldest first, without drafts, whose names begin with a dot."""
    try:
        return sorted(name for name in os.listdir(cache()) if not name.startswith("."))  # noqa: PTH208  as above
    except FileNotFoundError:
        return []


def folder(choice: str) -> str:
    """Return the folder of a value of $ACCEL_CATALOG. Raise NoCatalog."""
    if choice != NEWEST:
        return choice
    names = snapshots()
    if not names:
        raise NoCatalog(f"nothing was refreshed yet into {cache()}")
    return os.path.join(cache(), names[-1])  # noqa: PTH118  as above
