"""What jobs are called at the command line: by the name in their job file, and by a short id."""

import re
from collections.abc import Iterable
from itertools import takewhile

from ..backends.base import JobRef
from ..model.keys import NAMED_DIGITS

SHORT = 8
"""Characters of a short id; more where those of two jobs begin alike."""
_DIGITS = re.compile(rf"-([0-9a-f]{{{NAMED_DIGITS}}})$")
"""How a name on a platform ends: see keys.platform_name."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""AWS Batch's own ids, which end so too."""


def job_name(name: str) -> str:
    """The name in the job file, of a job's name on its platform."""
    return _DIGITS.sub("", name)


def own(ref: JobRef) -> str:
    """The part of a job's id that jobs of one name do not share; a short id is its beginning."""
    found = None if _UUID.fullmatch(ref.id) else _DIGITS.search(ref.id)
    return found[1] if found else ref.id


def shorts(refs: Iterable[JobRef]) -> dict[JobRef, str]:
    """A short id of each that no other of them begins with."""
    ids = {ref: own(ref) for ref in refs}
    row = sorted(ids.values())
    beside = {each: near for each, *near in zip(row, ["", *row], [*row[1:], ""], strict=False)}
    alike = {each: max(_alike(each, other) for other in near) for each, near in beside.items()}
    return {ref: text[: max(SHORT, alike[text] + 1)] for ref, text in ids.items()}


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False)))


def match_rank(text: str, ref: JobRef, name: str) -> int | None:
    """How well the text names a job: 0 by its whole id or name on its platform, 1 by the name in its file, 2 by the
    beginning of an id or a name; None: not at all."""
    ids = (ref.id, name, own(ref))
    if text in ids:
        return 0
    if text == job_name(name):
        return 1
    return 2 if text and any(each.startswith(text) for each in ids) else None
