"""Source of prices and offers: the shipped data, or a refreshed catalog if $ACCEL_CATALOG asks for one."""

from __future__ import annotations

import os

CHOICE = "ACCEL_CATALOG"
"""Environment variable: `refreshed`, or the path of a folder. If unset or empty, the shipped data is read."""

NEWEST = "refreshed"
"""Value for the newest catalog in the cache."""

REFRESHED = ("prices.csv", "regions.csv", "sources.csv")
"""Files that such a folder replaces entirely."""

ADDED = ("accelerators.csv", "machines.csv")
"""Files to which such a folder may add lines. All other files are always the shipped ones."""


class NoCatalogue(Exception):
    """A missing or unreadable catalog that $ACCEL_CATALOG names. Not a ValueError, for the same reason as
    DamagedData."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{CHOICE}={os.environ.get(CHOICE, '')}: {why}")


def cache() -> str:
    """Return the user's folder of refreshed catalogs, with one dated folder each. It need not exist."""
    import platformdirs  # only where a refresh is asked for

    return os.path.join(platformdirs.user_cache_dir("accel"), "catalog")  # noqa: PTH118  pathlib takes 5 ms to import


def snapshots() -> list[str]:
    """Return the names of the refreshed catalogs in the cache, oldest first. Drafts, whose names begin with a dot, are
    left out."""
    try:
        return sorted(name for name in os.listdir(cache()) if not name.startswith("."))  # noqa: PTH208  as above
    except FileNotFoundError:
        return []


def folder(choice: str) -> str:
    """Return the folder that a value of $ACCEL_CATALOG refers to. Raises NoCatalogue."""
    if choice != NEWEST:
        return choice
    names = snapshots()
    if not names:
        raise NoCatalogue(f"nothing was refreshed yet into {cache()}")
    return os.path.join(cache(), names[-1])  # noqa: PTH118  as above
