"""Names and labels of jobs on machines of their own."""

import re

from accel.contract.machine_labels import EXPIRES, JOB, JOBS, MAKER, QUEUE, QUEUES, TARGET

from ...model.keys import NAMED_DIGITS, resource_name

ATTEMPT = "accel-attempt"
HOST = "accel-host"
"""Label of a log entry: number of the machine of the job that wrote it."""

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""Scope of a machine's account, whose roles say what it may do."""
METADATA, DRIVER = {"enable-guest-attributes": "TRUE", "enable-oslogin": "TRUE"}, {"install-nvidia-driver": "True"}
"""Metadata of machines besides what starts the agent, by gcloud's names. With DRIVER, Deep Learning VM images install a
driver; other images do not know it: https://docs.cloud.google.com/compute/docs/metadata/predefined-metadata-keys"""
PREFIX = "machine_prefix"
"""Key of a request's body: beginning of its machines' names. Requests that differ only in it are the same request."""

LOG = "accel-jobs"
"""Name of the log in Cloud Logging to which machines write the output of jobs."""

NAME_MAX = 45
"""Compute Engine's 63 characters, less -r99 for an attempt, -9999 for a node and what a boot disk adds."""

_NO_LABEL = re.compile(r"[^a-z0-9_-]+")


def machine_name(name: str) -> str:
    """Convert a platform name to the name of a job's machines."""
    return resource_name(name, NAME_MAX)


def attempt_name(name: str, number: int, prefix: str = "") -> str:
    """Return the name of an attempt's queued resource or instances. A stack's prefix replaces the end of the part
    before the key's digits, so that the longest name stays the same."""
    head, _, digits = name.rpartition("-")
    own = f"{prefix}{head[: NAME_MAX - NAMED_DIGITS - 1 - len(prefix)].strip('-')}-{digits}" if prefix else name
    return own if number == 1 else f"{own}-r{number}"


def queue_labels(name: str, attempt: int, key: str) -> dict[str, str]:
    """Return the labels of each node of a declared queue, which exists as long as its stack declares it."""
    return {MAKER: QUEUES, JOB: name, ATTEMPT: str(attempt), QUEUE: key}


def labels(name: str, attempt: int, target: str, expires: int) -> dict[str, str]:
    """Return the labels of every machine of an attempt. Google accepts lower case and at most 63 characters. Source:
    https://docs.cloud.google.com/compute/docs/labeling-resources#label_format"""
    fit = _NO_LABEL.sub("-", target.lower())[:63]
    return {MAKER: JOBS, JOB: name, ATTEMPT: str(attempt), TARGET: fit, EXPIRES: str(expires)}
