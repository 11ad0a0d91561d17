"""How jobs on machines of their own are named and marked."""

import re

from ...keys import NAMED_DIGITS

MAKER, JOBS = "accel-maker", "jobs"
"""Label and value of every machine that jobs make."""
JOB = "accel-job"
ATTEMPT = "accel-attempt"
HOST = "accel-host"
"""Label of a log entry: which machine of the job wrote it."""
TARGET = "accel-target"
EXPIRES = "accel-expires"
"""Label: seconds since 1970, after which nobody needs the machine any more."""

LOG = "accel-jobs"
"""Name of the log in Cloud Logging that machines write what jobs print to."""

NAME_MAX = 45
"""63 characters of a name on Compute Engine, less -r99 of an attempt, -9999 of a node and what a boot disk adds."""

_NO_DNS = re.compile(r"[^a-z0-9-]+")
_NO_LABEL = re.compile(r"[^a-z0-9_-]+")


def machine_name(name: str) -> str:
    """A platform name (see keys.platform_name) as resources of Google can have it; keeps the digits of the key."""
    head, _, digits = name.rpartition("-")
    plain = _NO_DNS.sub("-", head.lower())
    if not plain[:1].isalpha():
        plain = f"j-{plain}"
    return f"{plain[: NAME_MAX - NAMED_DIGITS - 1].strip('-')}-{digits}"


def attempt_name(name: str, number: int) -> str:
    """Of the queued resource or the instances of an attempt."""
    return name if number == 1 else f"{name}-r{number}"


def labels(name: str, attempt: int, target: str, expires: int) -> dict[str, str]:
    """Of every machine of an attempt. Values are as Google takes them: lower case, at most 63 characters. Source:
    https://docs.cloud.google.com/compute/docs/labeling-resources#label_format"""
    fit = _NO_LABEL.sub("-", target.lower())[:63]
    return {MAKER: JOBS, JOB: name, ATTEMPT: str(attempt), TARGET: fit, EXPIRES: str(expires)}
