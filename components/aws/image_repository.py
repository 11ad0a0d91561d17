"""An ECR repository for the images of jobs."""

from __future__ import annotations

import json

import pulumi
from pydantic import Field

from ..base import Component, Spec
from ..sdk import aws


class ImageRepositorySpec(Spec):
    """Retention of images."""

    immutable_tags: bool = Field(default=True, description="Make tags immutable: a pushed tag never changes its image")
    keep_images: int = Field(default=50, ge=1, le=1000, description="Maximum number of images; ECR removes older ones")
    untagged_days: int = Field(default=14, ge=1, description="Days after which untagged images are removed")
    kms_key_arn: str | None = None
    protect: bool = False
    force_delete: bool = Field(default=False, description="Delete the images too when the stack is destroyed")


class ImageRepository(Component):
    """A repository that scans on push. Replacing it (another key) loses its images."""

    TYPE = "accel:aws:ImageRepository"

    url: pulumi.Output[str]
    arn: pulumi.Output[str]

    def __init__(self, name: str, spec: ImageRepositorySpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        repository = aws.ecr.Repository(
            name,
            image_tag_mutability="IMMUTABLE" if spec.immutable_tags else "MUTABLE",
            image_scanning_configuration=aws.ecr.RepositoryImageScanningConfigurationArgs(scan_on_push=True),
            encryption_configurations=[
                aws.ecr.RepositoryEncryptionConfigurationArgs(
                    encryption_type="KMS" if spec.kms_key_arn else "AES256", kms_key=spec.kms_key_arn
                )
            ],
            force_delete=spec.force_delete,
            opts=self.child(protect=spec.protect),
        )
        aws.ecr.LifecyclePolicy(name, repository=repository.name, policy=lifecycle(spec), opts=self.child())
        self.url = repository.repository_url
        self.arn = repository.arn
        self.finish()


def lifecycle(spec: ImageRepositorySpec) -> str:
    rules = [
        {
            "rulePriority": 1,
            "description": "untagged images by age",
            "selection": {
                "tagStatus": "untagged",
                "countType": "sinceImagePushed",
                "countUnit": "days",
                "countNumber": spec.untagged_days,
            },
            "action": {"type": "expire"},
        },
        {
            "rulePriority": 2,
            "description": "the newest stay",
            "selection": {
                "tagStatus": "any",
                "countType": "imageCountMoreThan",
                "countNumber": spec.keep_images,
            },
            "action": {"type": "expire"},
        },
    ]
    return json.dumps({"rules": rules}, sort_keys=True, separators=(",", ":"))
