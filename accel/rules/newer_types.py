"""Recognition of machine types that may be newer than the catalogue rather than misspelt.

Clouds add families at the newest generation of a series or above it: g6f came after g6e, g7 after g7e, p6-b300 after
p6-b200, a3-ultragpu while a4 was announced. An unknown family name of the cloud's form, and not of an older generation,
may therefore be newer. A size that a known family does not have counts as misspelt, and so does a family that is a
known one with a letter too many or too few. `stacks refresh` is the way around a rejection. Forms:
https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html and
https://docs.cloud.google.com/compute/docs/machine-resource#naming_convention
"""

import re
from functools import cache

from accel.catalog import families, machines
from accel.catalog.machines import as_of
from accel.catalog.nearest import edits

_AHEAD = 2
"""Maximum number of generations above the newest known one; no catalogue is older than that."""

_MISSPELT = 2
"""Edit distance up to which two kinds of one series are the same kind misspelt (highgpu, higgpu); ultragpu and megagpu
are further apart."""

_AWS = re.compile(r"([a-z]+)(\d{1,2})[a-z]*(-[a-z]+\d+)?(?:\.(?:(?:(?!0|1x)\d+)?xlarge|metal(?:-\d+xl)?))?", re.ASCII)
_GCP = re.compile(r"([a-z])(\d{1,2})([a-z]*)-([a-z]+)-(?!0)\d+(g?)(?:-[a-z]+)?", re.ASCII)
_SUFFIX = {"a": "g", "g": ""}
"""Suffix after the number of a size, by Google's series with built-in GPUs."""


def aws(name: str) -> bool:
    """Return whether EC2 may have an NVIDIA GPU type or family of that name that the catalogue lacks."""
    form, of = _AWS.fullmatch(name), name.partition(".")[0]
    newest = _newest_of_aws().get(form[1]) if form else None
    if form is None or newest is None or of in families("aws") or not newest <= int(form[2]) <= newest + _AHEAD:
        return False
    # A processor's name differs from its successor's by a digit (b200, b300), and from a misspelt one by its length.
    return not (form[3] and any(len(of) != len(each) and edits(of, each, 1) == 1 for each in families("aws")))


def gcp(name: str) -> bool:
    """Return whether Compute Engine may have a type of that name with built-in GPUs that the catalogue lacks."""
    form = _GCP.fullmatch(name)
    if form is None or _SUFFIX.get(form[1]) != form[5]:
        return False
    letter, generation, kind = form[1], int(form[2]), form[4]
    newest = max(known for each, known, _, _ in _types_of_google() if each == letter)
    kinds = {each for *series, each in _types_of_google() if series == [letter, generation, form[3]]}
    return newest - bool(kinds) <= generation <= newest + _AHEAD and not any(
        edits(kind, each, _MISSPELT) <= _MISSPELT for each in kinds
    )


def doubt(cloud: str) -> str:
    return f"which the catalogue of {as_of(cloud)} does not know"


def fix(cloud: str, nearest: tuple[str, ...]) -> str:
    like = f"use {' or '.join(nearest)}, or " if nearest else ""
    known = f"`stacks refresh --cloud {cloud}` reads new types, and ACCEL_CATALOG=refreshed uses them"
    return f"{like}make sure that it exists: {known}"


REFRESHED = "`stacks refresh` reads sizes that are newer than the catalogue"
"""Fix for a size that a known family has gained since."""


@cache
def _newest_of_aws() -> dict[str, int]:
    forms = {_AWS.fullmatch(each.family) for each in machines("aws") if each.accelerator.startswith("nvidia-")}
    found: dict[str, int] = {}
    for form in forms:
        if form is not None:
            found[form[1]] = max(int(form[2]), found.get(form[1], 0))
    return found


@cache
def _types_of_google() -> frozenset[tuple[str, int, str, str]]:
    """Return letter, generation, variant and kind (`a`, 4, `x`, `highgpu`) of the machine types with built-in GPUs."""
    forms = [_GCP.fullmatch(each.name) for each in machines("gcp") if each.accelerator]
    return frozenset((form[1], int(form[2]), form[3], form[4]) for form in forms if form and form[1] in _SUFFIX)
