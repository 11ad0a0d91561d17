"""Google's APIs that an environment, or a part of one, needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pulumi

from ..base import Component, Spec
from ..sdk import gcp

READS = "cloudresourcemanager"
"""The provider reads the project through this API whenever it has enabled another, so this one comes first. Source:
resourceGoogleProjectServiceRead in
https://github.com/hashicorp/terraform-provider-google/blob/main/google/services/resourcemanager/resource_google_project_service.go"""


def enable_services(
    self: Component, name: str, project: str, services: Iterable[str], after: Iterable[pulumi.Resource] = ()
) -> list[gcp.projects.Service]:
    """Enable APIs of the project, by the first part of their names; resources that need one depend on it. They stay
    enabled when the stack is destroyed: others may use them."""
    return [
        gcp.projects.Service(
            f"{name}-{service}",
            project=project,
            service=f"{service}.googleapis.com",
            disable_on_destroy=False,
            opts=self.child(depends_on=list(after)),
        )
        for service in services
    ]


class ServicesSpec(Spec):
    """The APIs, by the first part of their names."""

    services: list[str]


@dataclass(frozen=True, kw_only=True)
class ServicesArgs:
    """The spec, and the project."""

    spec: ServicesSpec
    project: str


class Services(Component):
    """The APIs of an environment, enabled before anything else in it is created. A component enables its own as well,
    for users who deploy it without an environment. Service Usage itself has to be on, as in a project that was created
    in the console or by gcloud: https://docs.cloud.google.com/service-usage/docs/enabled-service#default"""

    TYPE = "accel:gcp:Services"

    enabled: pulumi.Output[list[str]]

    def __init__(self, name: str, args: ServicesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        wanted = sorted({*args.spec.services, READS})
        first = enable_services(self, name, args.project, [READS])
        made = first + enable_services(self, name, args.project, [each for each in wanted if each != READS], first)
        # Known only once all of them exist: wait for their ids, and return the names.
        self.enabled = pulumi.Output.all(*(each.id for each in made)).apply(lambda _: wanted)
        self.finish()
