"""Tags and names of jobs on AWS Batch that a stack's policies rely on."""

from accel.rules.aws import names

KEY_TAG = "accel:key"
"""Tag of every submitted job: its submission key."""
STACK_TAG = "accel:job-stack"
"""Tag of every submitted job: the definition prefix of its target, by which policies identify the jobs of one stack."""

DIGEST = 12
"""Characters of the hash at the end of a job-registered definition name."""


def own_definition(prefix: str, digest: str) -> str:
    """Name a definition that a job registers. With DIGEST question marks it is IAM's pattern of all of them."""
    return f"{prefix[: names.NAME_MAX - DIGEST - 1]}-{digest}"
