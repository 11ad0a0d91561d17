"""AWS tags of a job: its labels, and the tags by which it is found again."""

import re
from collections.abc import Mapping

from accel.contract import submissions

KIND = "aws-batch"

KEY = submissions.KEY_TAG
JOB = "accel:job"
STACK = submissions.STACK_TAG
SPEC = "accel:spec"
"""Tag for the hash of the request, so that one key is not taken for another job."""

# https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
KEY_MAX, VALUE_MAX = 128, 256
_ALLOWED = re.compile(r"[\w .:/=+@-]*")
RESERVED = ("aws:", "accel:")


def faults(labels: Mapping[str, str], key: str) -> list[str]:
    found: list[str] = []
    signs = "letters, digits, spaces and _.:/=+-@"
    for name, value in sorted(labels.items()):
        if not name or len(name) > KEY_MAX or not _ALLOWED.fullmatch(name):
            found.append(f'labels: the name "{name[:KEY_MAX]}" must be 1 to {KEY_MAX} {signs}')
        if name.lower().startswith(RESERVED):
            found.append(f'labels: the name "{name}" begins with {" or ".join(RESERVED)}, kept for AWS and accel')
        if len(value) > VALUE_MAX or not _ALLOWED.fullmatch(value):
            found.append(f"labels.{name}: must be at most {VALUE_MAX} {signs}")
    if not key or len(key) > VALUE_MAX or not _ALLOWED.fullmatch(key):
        found.append(f"key: must be 1 to {VALUE_MAX} {signs}, since it becomes a tag")
    return found
