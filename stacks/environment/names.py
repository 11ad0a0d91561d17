"""Physical names that contain the names of project and stack."""

import re

import pulumi


def stack_prefix() -> str:
    """Return <project>-<stack> without what AWS Batch and CloudWatch refuse: Pulumi takes dots in both names."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", f"{pulumi.get_project()}-{pulumi.get_stack()}")


def targets_path() -> str:
    """Return the path of the SSM parameters with the targets."""
    return f"/{pulumi.get_project()}/{pulumi.get_stack()}/targets"
