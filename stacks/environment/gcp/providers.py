"""The explicit provider of the Google Cloud section, with its project and labels."""

from __future__ import annotations

from typing import Any

import pulumi

from accel.rules.gcp.labels import to_gcp
from components.sdk import gcp

from ..config import Environment
from .config import Gcp


def labels(environment: Environment) -> dict[str, str]:
    own = {
        "accel-owner": environment.owner,
        "accel-project": pulumi.get_project(),
        "accel-stack": pulumi.get_stack(),
    }
    return to_gcp({**environment.labels, **own})


def gcp_provider(
    environment: Environment, section: Gcp, name: str = "", after: pulumi.Resource | None = None, **settings: Any
) -> gcp.Provider:
    """Use the credentials of the shell or of the CI job. The provider, and so its resources, wait for `after`."""
    return gcp.Provider(
        name or f"gcp-{section.region}",
        project=section.project,
        region=section.region,
        default_labels=labels(environment),
        # accel-stack says the same, and more.
        add_pulumi_attribution_label=False,
        opts=pulumi.ResourceOptions(depends_on=[after] if after else []),
        **settings,
    )
