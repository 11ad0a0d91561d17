"""A Cloud Run function built from files of this project: the build of its image, and its callers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pulumi

from ..base import Component, once
from ..sdk import gcp
from .service_accounts import project_role

RUNTIME = "python313"
"""Source: https://docs.cloud.google.com/functions/docs/runtime-support"""
LOCKS = Path(__file__).parent / "data"

BUILD_ROLES = ("roles/logging.logWriter", "roles/artifactregistry.writer", "roles/storage.objectViewer")
"""Roles of the account that builds the function's image, instead of the project's default one. Source:
https://docs.cloud.google.com/functions/docs/securing/build-custom-sa"""


def packages(name: str) -> str:
    """Return a function's requirements.txt: every installed package, with the hashes of its files. Google's builders
    run pip over it, which checks all of them if one has a hash. Sources:
    https://docs.cloud.google.com/run/docs/runtimes/python-dependencies,
    https://pip.pypa.io/en/stable/topics/secure-installs/#hash-checking-mode"""
    return (LOCKS / f"{name}.txt").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class FunctionSource:
    """A function's files by path, the bucket and folder of its archive, and the function of `main.py` to call."""

    files: Mapping[str, str]
    bucket: pulumi.Input[str]
    folder: str
    entry: str


@dataclass(frozen=True, kw_only=True)
class FunctionArgs:
    """A function that handles one call at a time and accepts no calls from the internet. `builds` is the display name
    of the account that builds it, `account` the one that it runs as, and `trigger` the event that calls it, if any."""

    project: str
    region: str
    description: str
    source: FunctionSource
    builds: str
    account: gcp.serviceaccount.Account
    environment: Mapping[str, pulumi.Input[str]]
    timeout_s: int
    trigger: gcp.cloudfunctionsv2.FunctionEventTriggerArgs | None = None


def function(
    self: Component,
    name: str,
    args: FunctionArgs,
    before: Sequence[pulumi.Resource],
    hooks: pulumi.ResourceHookBinding | None = None,
) -> gcp.cloudfunctionsv2.Function:
    v2 = gcp.cloudfunctionsv2
    return v2.Function(
        name,
        project=args.project,
        location=args.region,
        description=args.description,
        build_config=_build_config(self, name, args.project, args.source, args.builds),
        service_config=v2.FunctionServiceConfigArgs(
            available_memory="256M",
            timeout_seconds=args.timeout_s,
            # Two simultaneous calls would interfere, and the next call continues what one leaves unfinished.
            max_instance_count=1,
            max_instance_request_concurrency=1,
            # Cloud Scheduler and Eventarc count as internal: https://docs.cloud.google.com/run/docs/securing/ingress
            ingress_settings="ALLOW_INTERNAL_ONLY",
            environment_variables=dict(args.environment),
            service_account_email=args.account.email,
        ),
        event_trigger=args.trigger,
        opts=self.child(depends_on=list(before), hooks=hooks),
    )


def _build_config(
    self: Component, name: str, project: str, source: FunctionSource, purpose: str
) -> gcp.cloudfunctionsv2.FunctionBuildConfigArgs:
    """Upload the archive and create the account that builds it."""
    digest = hashlib.sha256("\0".join(part for item in sorted(source.files.items()) for part in item).encode())
    archive = gcp.storage.BucketObject(
        f"{name}-source",
        bucket=source.bucket,
        # Named by its content: an object replaced under its name would not be deployed.
        name=f"{source.folder}/function-{digest.hexdigest()[:16]}.zip",
        source=pulumi.AssetArchive({path: pulumi.StringAsset(text) for path, text in source.files.items()}),
        opts=self.child(),
    )
    builder = gcp.serviceaccount.Account(f"{name}-build", project=project, display_name=purpose, opts=self.child())
    builds = [project_role(self, f"{name}-build", project, role, builder.member) for role in BUILD_ROLES]
    v2 = gcp.cloudfunctionsv2
    return v2.FunctionBuildConfigArgs(
        runtime=RUNTIME,
        entry_point=source.entry,
        service_account=once(builder.name, *builds),
        source=v2.FunctionBuildConfigSourceArgs(
            storage_source=v2.FunctionBuildConfigSourceStorageSourceArgs(bucket=source.bucket, object=archive.name)
        ),
    )


def invoker(
    self: Component,
    name: str,
    project: str,
    location: str,
    function: gcp.cloudfunctionsv2.Function,
    member: pulumi.Input[str],
) -> gcp.cloudrunv2.ServiceIamMember:
    """Allow a member to call the function, whose Cloud Run service has its name. Source:
    https://docs.cloud.google.com/eventarc/standard/docs/functions/roles-permissions"""
    return gcp.cloudrunv2.ServiceIamMember(
        f"{name}-invoker",
        project=project,
        location=location,
        name=function.name,
        role="roles/run.invoker",
        member=member,
        opts=self.child(),
    )
