"""Names of jobs at the command line: the name in their job file, and a short id."""

import re
from collections.abc import Iterable
from itertools import takewhile

from ..backends.base import JobRef
from ..model.keys import NAMED_DIGITS

SHORT = 8
"""Characters of a short id; longer where the ids of two jobs begin alike."""
_DIGITS = re.compile(rf"-([0-9a-f]{{{NAMED_DIGITS}}})$")
"""Ending of a name on a platform: see keys.platform_name."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""AWS Batch's own ids, which have the same ending."""


def job_name(name: str) -> str:
    """Return the name in the job file, given a job's name on its platform."""
    return _DIGITS.sub("", name)


def own(ref: JobRef) -> str:
    """Return the part of a job's id that other jobs of its name do not share; a short id is its beginning."""
    found = None if _UUID.fullmatch(ref.id) else _DIGITS.search(ref.id)
    return found[1] if found else ref.id


def shorts(refs: Iterable[JobRef]) -> dict[JobRef, str]:
    """Return a short id for each job that begins no other job's id."""
    ids = {ref: own(ref) for ref in refs}
    row = sorted(ids.values())
    beside = {each: near for each, *near in zip(row, ["", *row], [*row[1:], ""], strict=False)}
    alike = {each: max(_alike(each, other) for other in near) for each, near in beside.items()}
    return {ref: text[: max(SHORT, alike[text] + 1)] for ref, text in ids.items()}


def _alike(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False)))


def match_rank(text: str, ref: JobRef, name: str) -> int | None:
    """Rate how well the text names a job: 0 for its whole id or name on its platform, 1 for the name in its file, 2 for
    the beginning of an id or a name, None for no match."""
    ids = (ref.id, name, own(ref))
    if text in ids:
        return 0
    if text == job_name(name):
        return 1
    return 2 if text and any(each.startswith(text) for each in ids) else None
