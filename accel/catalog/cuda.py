"""CUDA releases: the GPUs they support, the drivers they need, and base images. A release runs on its own driver and on
every later one; within a major version (from 11 on) also on an older one, down to the first of that major version, but
without code that is compiled at load time (PTX). Source:
https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"""

from dataclasses import dataclass
from functools import cache

from accel.catalog.accelerators import Accelerator
from accel.catalog.tables import Row, rows

Version = tuple[int, ...]
"""Version of CUDA (12, 8) or of a driver (570, 26)."""


@dataclass(frozen=True, slots=True)
class Release:
    """A CUDA release, with the driver that shipped with it and the oldest driver that can run it at all."""

    cuda: Version
    driver: Version
    least_driver: Version
    source: str


@dataclass(frozen=True, slots=True)
class Architecture:
    """The releases that support GPUs of a compute capability; `last` is None while none has dropped them."""

    first: Version
    last: Version | None
    source: str


@dataclass(frozen=True, slots=True)
class Base:
    """A base image. NVIDIA deletes the images of a release six months after the end of the driver branch that
    shipped with it (`branch_ends`: a month, or `ended`). Source:
    https://gitlab.com/nvidia/container-images/cuda/-/issues/177"""

    cuda: Version
    image: str
    driver_branch: str
    branch_ends: str
    source: str


def version(text: str) -> Version:
    """Raise ValueError for anything but numbers and dots."""
    return tuple(int(part) for part in text.split("."))


def format_driver(driver: Version) -> str:
    """Format as NVIDIA does, with two digits in all places after the first: 580.65.06."""
    return ".".join([str(driver[0]), *(f"{part:02d}" for part in driver[1:])])


def version_text(found: Version) -> str:
    """Format as major.minor: 12.8."""
    return ".".join(str(part) for part in found[:2])


@cache
def releases() -> dict[Version, Release]:
    """Return the newest first."""
    return {each.cuda: each for each in map(_release, rows("cuda_releases.csv"))}


@cache
def architectures() -> dict[str, Architecture]:
    return {row["compute_capability"]: _architecture(row) for row in rows("cuda_architectures.csv")}


@cache
def bases() -> tuple[Base, ...]:
    """Return the newest CUDA first."""
    return tuple(map(_base, rows("cuda_images.csv")))


def release(cuda: Version) -> Release | None:
    """Return the release, or the nearest earlier one of the same major version; None if there is none."""
    older = [known for known in releases() if known[0] == cuda[0] and known <= cuda[:2]]
    return releases()[max(older)] if older else None


def architecture(kind: Accelerator) -> Architecture | None:
    return architectures().get(kind.compute_capability)


def base(kind: Accelerator, driver: Version | None = None) -> Base | None:
    """Return the newest image that supports the accelerator and whose own driver is no newer than `driver`, otherwise
    the newest that the driver runs at all; without a driver, the newest that supports the accelerator. None if there is
    none."""
    known = architecture(kind)
    if known is None:
        return None
    fit = [each for each in bases() if known.first <= each.cuda and (known.last is None or each.cuda <= known.last)]
    if driver is None:
        return fit[0] if fit else None
    for field in ("driver", "least_driver"):
        for each in fit:
            if driver >= getattr(releases()[each.cuda], field):
                return each
    return None


def _version(row: Row, column: str) -> Version:
    try:
        return version(row[column])
    except ValueError:
        raise row.damaged(column, f"not a version: {row[column]}") from None


def _release(row: Row) -> Release:
    return Release(_version(row, "cuda"), _version(row, "driver"), _version(row, "least_driver"), row["source"])


def _architecture(row: Row) -> Architecture:
    last = _version(row, "last_cuda") if row["last_cuda"] else None
    return Architecture(_version(row, "first_cuda"), last, row["source"])


def _base(row: Row) -> Base:
    found = _version(row, "cuda")
    if found not in releases():
        raise row.damaged("cuda", f"no release of cuda_releases.csv: {row['cuda']}")
    return Base(found, row["image"], row["driver_branch"], row["branch_ends"], row["source"])
