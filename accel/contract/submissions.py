"""What jobs mark on AWS Batch, and a stack's policies go by."""

from accel.rules.aws import names

KEY_TAG = "accel:key"
"""Of every submitted job: its submission key."""
STACK_TAG = "accel:job-stack"
"""Of every submitted job: the definition prefix of its target, by which policies know the jobs of one stack."""

DIGEST = 12
"""Characters of the hash that ends the name of a definition that a job registers."""


def own_definition(prefix: str, digest: str) -> str:
    """The name of a definition that a job registers; with DIGEST question marks, IAM's pattern of all of them."""
    return f"{prefix[: names.NAME_MAX - DIGEST - 1]}-{digest}"
