"""The fields that TPU VMs and GPU VMs of a stack share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import labels as gcp_labels
from accel.rules.gcp import vms

from ..base import Spec

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
"""One scope for all: the roles of the machine's service account decide what it may do. Source:
https://docs.cloud.google.com/compute/docs/access/service-accounts#scopes_best_practice"""


class VmSpec(Spec):
    """Fields of every machine."""

    zone: str
    external_address: bool = Field(
        default=False, description="Assign an external IP address; without one, SSH goes through IAP"
    )
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    tags: list[str] = Field(default_factory=list[str], description="Network tags, which firewall rules refer to")
    metadata: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Additional metadata keys, visible to everyone who may read the machine",
    )
    startup_script: str | None = Field(
        default=None, description="Script that root runs at each boot; it must not contain secrets"
    )
    secure_boot: bool = Field(
        default=False, description="Enable Secure Boot; unsigned kernel modules, such as drivers, do not load with it"
    )

    def vm_findings(self) -> list[Finding]:
        return gcp_labels.labels(self.labels, own=1) + vms.own_keys(self.labels, self.metadata)

    @property
    def all_labels(self) -> dict[str, str]:
        """Return the labels as Google takes them; the provider adds those for owner and stack."""
        return gcp_labels.to_gcp(self.labels)

    @property
    def region(self) -> str:
        return self.zone.rpartition("-")[0]


@dataclass(frozen=True, kw_only=True)
class VmArgs:
    """The location of a machine and its account; there is no default account. Network and subnetwork are self links or
    projects/<p>/...; the subnetwork is in the region of the spec's zone."""

    project: str
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    service_account: pulumi.Input[str]


NO_PROJECT_KEYS = {"block-project-ssh-keys": "TRUE"}
"""Source: https://docs.cloud.google.com/compute/docs/connect/restrict-ssh-keys"""


def metadata(given: Mapping[str, str], **own: str | None) -> dict[str, str]:
    """Merge a person's metadata with the stack's own keys, in which - is written as _; skip None. OS Login is always
    on, and SSH keys of the project give no access."""
    keys = {name.replace("_", "-"): value for name, value in own.items() if value}
    return {**given, "enable-oslogin": "TRUE", **NO_PROJECT_KEYS, **keys}
