"""The ground of jobs on machines of their own: a bucket for their records, an account for their machines, firewalls."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pydantic import Field

from accel.contract import buckets

from ..base import Component, Spec, map_present, once
from ..sdk import gcp
from .firewalls import among
from .job_bucket import JobBucketSpec, job_bucket, job_roles
from .service_accounts import custom_role
from .vm_account import VmAccount, VmAccountArgs, VmAccountSpec

TAG = "accel-jobs"
"""Network tag of every machine that jobs create."""

IAP = "35.235.240.0/20"
"""Source range of connections through Identity-Aware Proxy. Source:
https://docs.cloud.google.com/iap/docs/using-tcp-forwarding#create-firewall-rule"""

RELEASE = ("compute.instances.delete",)
"""Permissions with which a machine deletes itself when its job has ended."""
RELEASE_ANY: Mapping[str, Sequence[str]] = {
    "gce": (
        "compute.instanceGroupManagers.delete",
        "compute.instanceGroupManagers.get",
        "compute.instanceGroups.delete",
    ),
    "tpu-vm": ("tpu.nodes.delete",),
}
"""Further permissions that some kinds of targets need for it, and that no condition can narrow: IAM Conditions support
instances and instance templates of Compute Engine, but neither managed instance groups nor any resource of Cloud TPU.
Code that runs as the account can therefore delete every one in the project. Deleting a queued resource needs the
permission of its nodes. Sources: https://docs.cloud.google.com/iam/docs/conditions-resource-attributes,
https://docs.cloud.google.com/iam/docs/roles-permissions/tpu"""
INSTANCE = "compute.googleapis.com/Instance"


class VmJobsSpec(JobBucketSpec):
    """The ground of jobs on TPU VMs and GPU VMs of their own: their bucket and further settings."""

    location: str | None = Field(default=None, description="Location of the bucket. Default: the section's region")
    keep_days: int = Field(default=90, ge=1, description="Days after which records and results of jobs are deleted")
    ssh: bool = Field(default=True, description="Let `accel-jobs exec` reach machines through Identity-Aware Proxy")
    release: bool = Field(
        default=True,
        description="Let machines delete themselves when their job has ended; otherwise clients delete them",
    )
    account: VmAccountSpec = Field(
        default=VmAccountSpec(), description="Resources that jobs may access, in addition to their bucket"
    )


@dataclass(frozen=True, kw_only=True)
class VmJobsArgs:
    """The spec, the project and its region, the network of the machines, and the kinds of targets that create them."""

    spec: VmJobsSpec
    project: str
    region: str
    network: pulumi.Input[str]
    kinds: Collection[str] = tuple(RELEASE_ANY)


class VmJobs(Component):
    """A bucket for which only this ground's account and people with roles of their own have access, and that account.
    It may only write results and checkpoints there, log, pull images, and delete machines: of VMs only those whose
    names begin with `machine_prefix`, as those of this ground's jobs do. It may read targets, queues and records but
    not write them. Replacing the bucket loses the records of jobs; their machines go on, and cannot report any more."""

    TYPE = "accel:gcp:VmJobs"

    bucket: pulumi.Output[str]
    service_account: pulumi.Output[str]
    machine_prefix: pulumi.Output[str]

    def __init__(self, name: str, args: VmJobsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        bucket = job_bucket(self, name, spec, args.project, spec.location or args.region)
        account = VmAccount(name, VmAccountArgs(spec=spec.account, project=args.project), self.child())
        prefix = machine_prefix(pulumi.get_project(), pulumi.get_stack(), name)
        granted = job_roles(self, f"{name}-records", bucket.name, account.member)
        granted += _released(self, name, args, account.member, prefix) if spec.release else []
        _firewalls(self, name, args)
        self.bucket = bucket.name
        # Written as the account itself: a machine that may not write to the bucket cannot report how its job ended.
        self.service_account = once(account.email, *granted)
        self.machine_prefix = pulumi.Output.from_input(prefix)
        self.finish()


def machine_prefix(*of: str) -> str:
    """Return the prefix of a ground's machines, which differs from other grounds' as far as 20 bits can tell."""
    return f"j{hashlib.sha256('/'.join(of).encode()).hexdigest()[:5]}-"


def _released(
    self: Component, name: str, args: VmJobsArgs, member: pulumi.Output[str], prefix: str
) -> list[pulumi.Output[str]]:
    """Allow machines to delete themselves; return the grants' ids."""
    own = f'resource.type == "{INSTANCE}" && resource.name.extract("/instances/{{name}}").startsWith("{prefix}")'
    rest = [permission for kind, needs in RELEASE_ANY.items() if kind in args.kinds for permission in needs]
    wanted: list[tuple[str, Sequence[str], str | None]] = []
    if "gce" in args.kinds:
        wanted.append(("", RELEASE, own))
    if rest:
        wanted.append(("-any", rest, None))
    given: list[pulumi.Output[str]] = []
    for end, permissions, condition in wanted:
        role_id = f"accelRelease{end.title()}_{pulumi.get_stack()}_{name}"
        title = f"accel: machines of jobs give themselves back ({name}{end})"
        role = custom_role(self, f"{name}-release{end}", args.project, role_id, title, permissions)
        granted = gcp.projects.IAMMember(
            f"{name}-release{end}",
            project=args.project,
            role=role.name,
            member=member,
            condition=gcp.projects.IAMMemberConditionArgs(title=f"machines {prefix}", expression=condition)
            if condition
            else None,
            opts=self.child(),
        )
        given.append(granted.id)
    return given


def _firewalls(self: Component, name: str, args: VmJobsArgs) -> None:
    among(self, name, args.project, args.network, TAG)
    if args.spec.ssh:
        gcp.compute.Firewall(
            f"{name}-ssh",
            project=args.project,
            network=args.network,
            direction="INGRESS",
            allows=[gcp.compute.FirewallAllowArgs(protocol="tcp", ports=["22"])],
            source_ranges=[IAP],
            target_tags=[TAG],
            opts=self.child(),
        )


class BucketTargetsSpec(Spec):
    """An empty spec: the folder is fixed, and everyone who may read the bucket finds the targets."""

    folder: str = buckets.TARGETS


@dataclass(frozen=True, kw_only=True)
class BucketTargetsArgs:
    """The spec, the bucket, and each target as JSON text by its name."""

    spec: BucketTargetsSpec
    bucket: pulumi.Input[str]
    targets: Mapping[str, pulumi.Input[str]]


class BucketTargets(Component):
    """Objects from which `jobs` reads targets without asking Pulumi: gs://<bucket>/accel-targets/<target>.json."""

    TYPE = "accel:gcp:BucketTargets"

    source: pulumi.Output[str]

    def __init__(self, name: str, args: BucketTargetsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        for target, text in args.targets.items():
            gcp.storage.BucketObject(
                f"{name}-{target}",
                bucket=args.bucket,
                name=f"{args.spec.folder}/{target}.json",
                content=text,
                content_type="application/json",
                opts=self.child(),
            )
        bucket = pulumi.Output.from_input(args.bucket)
        self.source = map_present(bucket, lambda known: f"gs://{known}/{args.spec.folder}")
        self.finish()
