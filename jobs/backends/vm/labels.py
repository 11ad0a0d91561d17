"""How jobs on machines of their own are named and marked."""

import re

from accel.contract.machine_labels import EXPIRES, JOB, JOBS, MAKER, QUEUE, QUEUES, TARGET

from ...model.keys import NAMED_DIGITS

ATTEMPT = "accel-attempt"
HOST = "accel-host"
"""Label of a log entry: which machine of the job wrote it."""

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""Of a machine's account, whose roles say what it may do."""
METADATA, DRIVER = {"enable-guest-attributes": "TRUE", "enable-oslogin": "TRUE"}, {"install-nvidia-driver": "True"}
"""What machines have beside what starts the agent, by gcloud's names; Deep Learning VM images install a driver then,
and no other image knows it: https://docs.cloud.google.com/compute/docs/metadata/predefined-metadata-keys"""
PREFIX = "machine_prefix"
"""Key of a request's body: with what the names of its machines begin. It is no part of what makes two requests one."""

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


def attempt_name(name: str, number: int, prefix: str = "") -> str:
    """Of the queued resource or the instances of an attempt. A stack's prefix takes the place of the end of what comes
    before the key's digits, so that it is as long as it may be without."""
    head, _, digits = name.rpartition("-")
    own = f"{prefix}{head[: NAME_MAX - NAMED_DIGITS - 1 - len(prefix)].strip('-')}-{digits}" if prefix else name
    return own if number == 1 else f"{own}-r{number}"


def queue_labels(name: str, attempt: int, key: str) -> dict[str, str]:
    """Of every node of an attempt that a declared queue makes; it stays as long as the stack wants it."""
    return {MAKER: QUEUES, JOB: name, ATTEMPT: str(attempt), QUEUE: key}


def labels(name: str, attempt: int, target: str, expires: int) -> dict[str, str]:
    """Of every machine of an attempt. Values are as Google takes them: lower case, at most 63 characters. Source:
    https://docs.cloud.google.com/compute/docs/labeling-resources#label_format"""
    fit = _NO_LABEL.sub("-", target.lower())[:63]
    return {MAKER: JOBS, JOB: name, ATTEMPT: str(attempt), TARGET: fit, EXPIRES: str(expires)}
