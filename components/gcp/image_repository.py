"""A repository of Artifact Registry for the images of jobs."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pydantic import Field

from ..base import Component, Spec
from ..sdk import gcp
from .services import enable_services

_DAY_S = 24 * 3600


class GcpImageRepositorySpec(Spec):
    """Retention of images. An image that matches both a keep policy and a delete policy stays. Source:
    https://docs.cloud.google.com/artifact-registry/docs/repositories/cleanup-policy-overview"""

    repository_id: str | None = Field(
        default=None,
        pattern=r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$",
        description="Name of the repository in image paths. Default: <stack>-<key>",
    )
    location: str | None = Field(
        default=None, description="Region, or us, europe or asia. Default: the section's region"
    )
    immutable_tags: bool = Field(default=True, description="Prevent a pushed tag from ever changing its image")
    keep_recent: int = Field(
        default=50, ge=1, description="Number of newest versions of each image that are always kept"
    )
    untagged_days: int = Field(default=14, ge=1, description="Days after which untagged versions are deleted")
    delete_days: int | None = Field(
        default=None, ge=1, description="Days after which all other versions are deleted. Default: never"
    )
    dry_run: bool = Field(default=False, description="Only log what would be deleted")
    kms_key: str | None = None
    protect: bool = False


@dataclass(frozen=True, kw_only=True)
class ImageRepositoryArgs:
    """The spec, the project, and the default region."""

    spec: GcpImageRepositorySpec
    project: str
    region: str


class ImageRepository(Component):
    """A docker repository. The project decides whether images are scanned. Replacing the repository (another name,
    location or encryption key) loses its images, and so does destroying it."""

    TYPE = "accel:gcp:ImageRepository"

    name: pulumi.Output[str]
    url: pulumi.Output[str]

    def __init__(self, name: str, args: ImageRepositoryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        location = spec.location or args.region
        services = enable_services(self, name, args.project, ["artifactregistry"])
        made = gcp.artifactregistry.Repository(
            name,
            project=args.project,
            location=location,
            # The provider generates none.
            repository_id=spec.repository_id or repository_id(pulumi.get_stack(), name),
            format="DOCKER",
            docker_config=gcp.artifactregistry.RepositoryDockerConfigArgs(immutable_tags=spec.immutable_tags),
            cleanup_policies=_policies(spec),
            cleanup_policy_dry_run=spec.dry_run,
            kms_key_name=spec.kms_key,
            opts=self.child(protect=spec.protect, delete_before_replace=True, depends_on=services),
        )
        # projects/<p>/locations/<l>/repositories/<r>
        self.name = made.id
        self.url = made.repository_id.apply(lambda short: f"{location}-docker.pkg.dev/{args.project}/{short}")
        self.finish()


def repository_id(stack: str, key: str) -> str:
    """Return a repository's own name for its stack and key: 63 characters at most, the first a letter."""
    bare = "".join(each if each.isalnum() else "-" for each in f"{stack}-{key}".lower())
    return (bare if bare[0].isalpha() else f"r-{bare}")[:63].rstrip("-")


def _policies(spec: GcpImageRepositorySpec) -> list[gcp.artifactregistry.RepositoryCleanupPolicyArgs]:
    def deleted(id: str, state: str, days: int) -> gcp.artifactregistry.RepositoryCleanupPolicyArgs:
        return gcp.artifactregistry.RepositoryCleanupPolicyArgs(
            id=id,
            action="DELETE",
            condition=gcp.artifactregistry.RepositoryCleanupPolicyConditionArgs(
                tag_state=state, older_than=f"{days * _DAY_S}s"
            ),
        )

    recent = gcp.artifactregistry.RepositoryCleanupPolicyArgs(
        id="keep-recent",
        action="KEEP",
        most_recent_versions=gcp.artifactregistry.RepositoryCleanupPolicyMostRecentVersionsArgs(
            keep_count=spec.keep_recent
        ),
    )
    old = [deleted("delete-old", "ANY", spec.delete_days)] if spec.delete_days else []
    return [recent, deleted("delete-untagged", "UNTAGGED", spec.untagged_days), *old]
