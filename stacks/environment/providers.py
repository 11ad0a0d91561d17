"""Explicit providers: account, region and tags come from the config and not from the shell."""

from __future__ import annotations

import pulumi

from components.sdk import aws

from .aws.config import Aws
from .config import Environment


def tags(environment: Environment) -> dict[str, str]:
    return {
        **environment.labels,
        "accel:owner": environment.owner,
        "accel:project": pulumi.get_project(),
        "accel:stack": pulumi.get_stack(),
    }


def aws_provider(environment: Environment, section: Aws) -> aws.Provider:
    """Use the credentials of the shell or of the CI job."""
    return aws.Provider(
        f"aws-{section.region}",
        region=section.region,  # type: ignore[arg-type] - the SDK types it as an enum and takes the text
        allowed_account_ids=[section.account_id] if section.account_id else None,
        default_tags=aws.ProviderDefaultTagsArgs(tags=tags(environment)),
    )
