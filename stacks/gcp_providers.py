"""The explicit provider of the Google Cloud section: which project, which labels."""

import pulumi
import pulumi_gcp as gcp

from accel.rules.gcp_labels import translated

from .config import Environment
from .gcp_config import Gcp


def labels(environment: Environment) -> dict[str, str]:
    """Labels of every resource: who owns it, and which stack made it."""
    own = {
        "accel-owner": environment.owner,
        "accel-project": pulumi.get_project(),
        "accel-stack": pulumi.get_stack(),
    }
    return translated({**environment.labels, **own})


def gcp_provider(environment: Environment, section: Gcp) -> gcp.Provider:
    """The provider of the section's project. Credentials are those of the shell or of the CI job."""
    return gcp.Provider(
        f"gcp-{section.region}",
        project=section.project,
        region=section.region,
        default_labels=labels(environment),
        # accel-stack tells as much, and more.
        add_pulumi_attribution_label=False,
    )
