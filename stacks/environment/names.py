"""Physical names that hold the names of project and stack."""

import re

import pulumi


def stack_prefix() -> str:
    """<project>-<stack> with what no service refuses: Pulumi takes dots in both, AWS Batch and CloudWatch do not."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", f"{pulumi.get_project()}-{pulumi.get_stack()}")


def targets_path() -> str:
    """Of the SSM parameters that hold the targets."""
    return f"/{pulumi.get_project()}/{pulumi.get_stack()}/targets"
