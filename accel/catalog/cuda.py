"""CUDA: which GPUs a release knows, which driver it wants, and the base images of it.

A release runs on its own driver and on every later one. Within a major version (from 11 on) it also runs on an older
driver, down to the first of that major version, without what is compiled when it is loaded (PTX). Source:
https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
"""

from dataclasses import dataclass
from functools import cache

from accel.catalog.accelerators import Accelerator
from accel.catalog.tables import Row, rows

Version = tuple[int, ...]
"""Of CUDA (12, 8) or of a driver (570, 26)."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of CUDA: the driver that came with it, and the oldest one that it may run on at all."""

    cuda: Version
    driver: Version
    least_driver: Version
    source: str


@dataclass(frozen=True, slots=True)
class Architecture:
    """The first release that knows GPUs of a compute capability, and the last one; None while none dropped them."""

    first: Version
    last: Version | None
    source: str


@dataclass(frozen=True, slots=True)
class Base:
    """An image to build on. NVIDIA deletes the images of a release six months after the driver branch that came with
    it has ended (`branch_ends`: a month, or `ended`).
    Source: https://gitlab.com/nvidia/container-images/cuda/-/issues/177"""

    cuda: Version
    image: str
    driver_branch: str
    branch_ends: str
    source: str


def version(text: str) -> Version:
    """The numbers of a version. Raises ValueError for anything but numbers and dots."""
    return tuple(int(part) for part in text.split("."))


def format_driver(driver: Version) -> str:
    """A driver's version as NVIDIA writes it, two digits in the last places: 580.65.06."""
    return ".".join([str(driver[0]), *(f"{part:02d}" for part in driver[1:])])


def version_text(found: Version) -> str:
    """A version of CUDA as people write it: 12.8."""
    return ".".join(str(part) for part in found[:2])


@cache
def releases() -> dict[Version, Release]:
    """Every release by its version, newest first."""
    return {each.cuda: each for each in map(_release, rows("cuda_releases.csv"))}


@cache
def architectures() -> dict[str, Architecture]:
    """By compute capability, such as 9.0."""
    return {row["compute_capability"]: _architecture(row) for row in rows("cuda_architectures.csv")}


@cache
def bases() -> tuple[Base, ...]:
    """The images to build on, newest CUDA first."""
    return tuple(map(_base, rows("cuda_images.csv")))


def release(cuda: Version) -> Release | None:
    """The release of a version, else the one before it in the same major version; None for one that is too far away to
    be judged, such as a newer major version."""
    older = [known for known in releases() if known[0] == cuda[0] and known <= cuda[:2]]
    return releases()[max(older)] if older else None


def architecture(kind: Accelerator) -> Architecture | None:
    """That of an accelerator; None for one that CUDA does not run on."""
    return architectures().get(kind.compute_capability)


def base(kind: Accelerator, driver: Version | None = None) -> Base | None:
    """The image to build on for an accelerator: the newest that knows it and runs on the driver as it is, else the
    newest that the driver runs at all; None where there is none. Without a driver, the newest that knows it."""
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
